# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for each server of a layout, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import layout
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre.layout import plan as lustre_server_plan

ROLE = Path(__file__).resolve().parents[3] / "roles" / "lustre_server"
MDT = {"kind": "mdt", "index": 0, "device": "/dev/md/mdt", "servers": ["a", "b"]}
OST = {"kind": "ost", "index": 0, "device": "/dev/md/ost", "servers": ["b", "a"]}
HOME = {"name": "home", "targets": [MDT, OST], "pools": {"disk": [0]}, "quota": "ug"}


def role_settings(**changes: Any) -> dict[str, Any]:
    """The role's defaults with a layout and changes, as its vars hand them on."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("lustre_server_"): value for name, value in defaults.items()}
    return {
        **found,
        "nids": {"a": ["10.0.0.1@tcp", "10.1.0.1@o2ib"], "b": ["10.0.0.2@tcp"]},
        "mgs": {"device": "/dev/md/mdt", "servers": ["a", "b"]},
        "file_systems": [HOME],
        "networks": [{"name": "tcp", "interfaces": ["eth0"]}],
        "source": "preinstalled",
        **changes,
    }


def system(**changes: Any) -> dict[str, Any]:
    return {"file_systems": [{**HOME, **changes}]}


def test_the_defaults_of_the_role_are_an_empty_request() -> None:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    settings = {name.removeprefix("lustre_server_"): one for name, one in defaults.items()}
    assert lustre_server_plan(settings, "a")["problems"] == []


def test_each_server_takes_its_part() -> None:
    first, second = (lustre_server_plan(role_settings(), host) for host in "ab")
    assert [one["name"] for one in first["targets"]] == ["home-MDT0000"]
    assert first["first"] == first["started"] == ["lustre-home\\x2dmdt0000.mount"]
    assert first["standby"] == ["lustre-home\\x2dost0000.mount"] == second["started"]
    assert second["first"] == []
    assert "gpufarm-lustre-served.target" in first["units"]
    assert "\nBefore=gpufarm-lustre-served.target\n" in first["units"]["lustre-home\\x2dmdt0000.mount"]
    assert first["pools"] == {"home.disk": ["home-OST0000"]}
    assert first["quotas"] == {"home": "ug"}


def test_a_target_that_its_partner_serves_stays_there() -> None:
    """After a failover nothing is started, or mounted twice, and the unit stays for the way back."""
    usual, now = (lustre_server_plan(role_settings(), "a", elsewhere=held) for held in ([], ["home-MDT0000"]))
    assert now["started"] == now["first"] == now["mounts"] == []
    assert now["standby"] == usual["started"] + usual["standby"]
    assert now["units"] == usual["units"] and now["targets"] == usual["targets"]


def test_targets_have_addresses_in_place_of_names() -> None:
    settings = role_settings(nids={"a": ["oss-a"], "b": ["10.0.0.2@tcp", "oss-b@o2ib"]})
    plan = lustre_server_plan(settings, "b", {"oss-a": ["10.0.0.1"], "oss-b": ["10.1.0.2"]})
    assert plan["names"] == ["oss-a", "oss-b"]
    assert plan["targets"][0]["mgs_nodes"] == ["10.0.0.1@tcp", "10.0.0.2@tcp,10.1.0.2@o2ib"]


def test_mkfs_is_told_of_all_servers() -> None:
    first, second = (lustre_server_plan(role_settings(), host)["targets"][0] for host in "ab")
    nodes = ["--servicenode=10.0.0.1@tcp,10.1.0.1@o2ib", "--servicenode=10.0.0.2@tcp"]
    assert layout.mkfs_words(first) == ["--mgs", "--mdt", "--fsname=home", "--index=0", *nodes, "/dev/md/mdt"]
    assert layout.mkfs_words(second) == [
        *("--ost", "--fsname=home", "--index=0"),
        *(node.replace("service", "mgs") for node in nodes),
        *reversed(nodes),
        "/dev/md/ost",
    ]
    assert "--reformat" not in layout.mkfs_words(first) + layout.mkfs_words(second)


def test_a_management_target_of_its_own_comes_first() -> None:
    plan = lustre_server_plan(role_settings(mgs={"device": "/dev/md/mgs", "servers": ["a"]}), "a")
    assert [one["name"] for one in plan["targets"]] == ["MGS", "home-MDT0000"]
    assert layout.mkfs_words(plan["targets"][0]) == ["--mgs", "/dev/md/mgs"]
    assert "After=lnet.service lustre-mgs.mount\n" in plan["units"]["lustre-home\\x2dmdt0000.mount"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mgs": {}}, "lustre_server_mgs is empty"),
        ({"mgs": {"device": "/dev/md/mgs", "servers": ["c"]}}, "'c', which lustre_server_nids does not name"),
        ({"mgs": {"device": "/dev/md/mgs", "servers": []}}, "names no servers of /dev/md/mgs"),
        ({"mgs": {"device": "/dev/md/mgs", "servers": ["a"], "host": "a"}}, "has 'host'"),
        ({"mgs": {"device": "/dev/md/ost", "servers": ["b"]}}, "uses /dev/md/ost on b twice"),
        ({"nids": {"a": ["10.0.0.1@tcp"], "b": []}}, "has b without a NID"),
        ({"nids": {"b": ["10.0.0"], "a": ["10.0.0.1@tcp"]}}, "neither an IPv4 address nor"),
        ({"nids": {"b": ["10.0.0.2@tcp"]}}, "does not name a"),
        ({"networks": []}, "lustre_server_networks is empty"),
        (system(name="toolongname"), "1 to 8 letters"),
        (system(name="a b"), "1 to 8 letters"),
        (system(targets=[MDT]), "has no ost in home"),
        (system(targets=[OST]), "has no mdt with the index 0"),
        (system(targets=[MDT, OST, {**OST, "device": "/dev/md/other"}]), "the ost 0 of home twice"),
        (system(targets=[MDT, OST, {**OST, "index": 1}]), "uses /dev/md/ost on a twice"),
        (system(targets=[MDT, {**OST, "index": 65536}]), "from 0 to 65535"),
        (system(targets=[MDT, {**OST, "device": "sdb"}]), "has the device 'sdb'"),
        (
            system(targets=[MDT, {**OST, "device": "/dev/../etc/passwd"}]),
            "has the device '/dev/../etc/passwd'",
        ),
        (system(targets=[MDT, {**OST, "kind": "mgs"}]), "it is mdt or ost"),
        (system(targets=[MDT, {**OST, "reformat": True}]), "has 'reformat'"),
        (system(targets=[MDT, {**OST, "servers": "b"}]), "names no servers"),
        (system(targets=[MDT, {**OST, "servers": ["b", "b"]}]), "twice"),
        (system(pools={"disk": [7]}), "the ost 7 in the pool disk"),
        (system(pools={"a name that is long": [0]}), "up to 15 letters"),
        (system(quota="all"), "the quota 'all'"),
        ({"file_systems": [HOME, HOME]}, "names home twice"),
        ({"format": ["everything"]}, "no path of a device"),
        ({"module_parameters": {"osc": {"x": 1}}}, "lustre_server_module_parameters has"),
        ({"source": "repository"}, "lustre_server_apt_url is ''"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    found = lustre_server_plan(role_settings(**changes), "a")["problems"]
    assert any(words in one for one in found) and not any("\n" in one for one in found)


def test_nids_have_to_be_the_machines_own() -> None:
    machine = {
        "installed": True,
        "kernels": [],
        "interfaces": {"eth0": {"addresses": ["10.0.0.7"]}},
        "lnet": {"written_by": "lustre_server"},
        "names": {"oss-b": ["10.0.0.8"]},
    }
    [found] = lustre_server_plan(role_settings(), "b", machine=machine)["problems"]
    assert "10.0.0.2@tcp of b, whose interfaces in lustre_server_networks have 10.0.0.7" in found
    named = role_settings(nids={"a": ["10.0.0.1@tcp"], "b": ["oss-b"]})
    [found] = lustre_server_plan(named, "b", machine=machine)["problems"]
    assert "oss-b of b, whose interfaces" in found
    machine["names"] = {"oss-b": ["10.0.0.7"]}
    assert lustre_server_plan(named, "b", machine=machine)["problems"] == []


def test_a_machine_that_is_set_up_as_a_client_is_left_alone() -> None:
    machine = {
        "installed": True,
        "kernels": [],
        "interfaces": {"eth0": {"addresses": ["10.0.0.2"]}},
        "lnet": {"written_by": "lustre_client"},
        "names": {},
    }
    [found] = lustre_server_plan(role_settings(), "b", machine=machine)["problems"]
    assert "run lustre_client there with lustre_client_state absent" in found


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ({"TYPE": "ext4", "LABEL": "home"}, "a file system of type ext4 labelled home"),
        ({"TYPE": "xfs"}, "a file system of type xfs"),
        ({"TYPE": "LVM2_member"}, "a physical volume of LVM"),
        ({"TYPE": "linux_raid_member"}, "a part of a RAID"),
        ({"TYPE": "crypto_LUKS"}, "an encrypted device"),
        ({"PTTYPE": "gpt"}, "a partition table (gpt)"),
        ({"PTTYPE": "dos", "TYPE": "vfat"}, "a partition table (dos) and a file system of type vfat"),
    ],
)
def test_a_device_that_holds_something_is_refused(signature: dict[str, str], words: str) -> None:
    found = layout.signature_problem("/dev/sdb", signature, "oss1")
    assert f"/dev/sdb on oss1 holds {words}, and only an empty device is formatted" in found


def test_a_device_without_a_signature_is_not() -> None:
    assert layout.signature_problem("/dev/sdb", layout.parse_blkid("DEVNAME=/dev/sdb\n"), "oss1") == ""


TARGET = {
    "name": "home-OST0000",
    "kind": "ost",
    "mgs": False,
    "mgs_nodes": ["10.0.0.1@tcp"],
    "service_nodes": [],
}
FOUND = {"name": "home-OST0000", "kinds": ["ost"], "mgsnode": ["10.0.0.1@tcp"], "servicenode": []}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"name": "home-OST0001"}, ["it is home-OST0001"]),
        ({"kinds": ["mdt", "mgs"]}, ["it is of the kind mdt+mgs"]),
        ({"mgsnode": ["10.0.0.9@tcp"]}, ["its management nodes are 10.0.0.9@tcp"]),
        (
            {"servicenode": ["10.0.0.2@tcp:10.0.0.3@tcp"]},
            ["its service nodes are 10.0.0.2@tcp and 10.0.0.3@tcp"],
        ),
    ],
)
def test_targets_are_compared(changes: Any, words: list[str]) -> None:
    assert layout.differences(TARGET, {**FOUND, **changes}) == words


def test_pools_are_made_and_grow() -> None:
    wanted = {"home.disk": ["home-OST0000", "home-OST0001"], "home.new": ["home-OST0002"]}
    current = {"home.disk": ["home-OST0000", "home-OST0009"], "home.theirs": []}
    assert layout.pool_changes(wanted, current) == [
        ["pool_add", "home.disk", "home-OST0001"],
        ["pool_new", "home.new"],
        ["pool_add", "home.new", "home-OST0002"],
    ]
    assert layout.pool_changes(wanted, {**current, **wanted}) == []


def test_quotas_are_set_where_a_target_differs() -> None:
    enforced = {"home-MDT0000": "gu", "home-OST0000": "none", "scratch-OST0000": "none"}
    assert layout.quota_changes({"home": "ug"}, enforced) == [
        ["set_param", "-P", "osd-*.home-OST*.quota_slave.enabled=ug"]
    ]
    assert layout.quota_changes({"home": "ug"}, {"home-OST0000": "ug"}) == []
