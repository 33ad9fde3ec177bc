# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans and refusals for settings of the role lustre_client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre.client import plan as lustre_client_plan

ROLE = Path(__file__).resolve().parents[3] / "roles" / "lustre_client"
HOME = {"source": "10.0.0.1@tcp0:10.0.0.2@tcp:/home", "path": "/lustre/home"}
TCP = {"name": "tcp", "interfaces": ["eth0"]}


def role_settings(**changes: Any) -> dict[str, Any]:
    """The role's defaults with changes, as its vars hand them on."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("lustre_client_"): value for name, value in defaults.items()}
    return {
        **found,
        "file_systems": [HOME],
        "networks": [TCP],
        "apt_url": "https://mirror.example.org/lustre",
        "apt_key_url": "https://mirror.example.org/lustre.asc",
        "apt_key_fingerprint": "0" * 40,
        **changes,
    }


def unit(plan: dict[str, Any], name: str) -> dict[str, str]:
    """The settings of a unit, none of which is there twice."""
    pairs = [line.split("=", 1) for line in plan["units"][name].splitlines() if "=" in line]
    assert len(pairs) == len({key for key, _value in pairs})
    return dict(map(tuple, pairs))


def test_the_defaults_of_the_role_are_an_empty_request() -> None:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("lustre_client_"): value for name, value in defaults.items()}
    plan = lustre_client_plan(found)
    assert (plan["problems"], plan["units"]) == ([], {})


def test_a_mount_is_ordered_after_lnet_and_before_who_uses_it() -> None:
    plan = lustre_client_plan(role_settings(consumers=["jupyterhub.service"], mount_timeout=30))
    found = unit(plan, "lustre-home.mount")
    assert found["What"] == "10.0.0.1@tcp:10.0.0.2@tcp:/home"
    assert found["Where"] == "/lustre/home"
    assert found["Type"] == "lustre"
    assert found["Options"] == "_netdev,flock,noatime,nosuid,nodev"
    assert found["Requires"] == "lnet.service"
    assert "lnet.service" in found["After"].split()
    assert found["Before"] == "jupyterhub.service"
    assert found["TimeoutSec"] == "30"
    assert found["WantedBy"] == "remote-fs.target"
    assert plan["started"] == ["lustre-home.mount"]


def test_an_automount_starts_in_place_of_the_mount() -> None:
    plan = lustre_client_plan(role_settings(automount=True))
    assert plan["started"] == ["lustre-home.automount"]
    assert "WantedBy" not in unit(plan, "lustre-home.mount")
    assert "lnet.service" in unit(plan, "lustre-home.mount")["After"]
    assert "After" not in unit(plan, "lustre-home.automount")  # which would be a circle at boot
    assert plan["places"] == [{"path": "/lustre/home", "types": ["autofs"], "state": "possible"}]


def test_tunables_come_after_each_mount_and_survive_systemd() -> None:
    plan = lustre_client_plan(
        role_settings(parameters={"jobid_name": "%H:%e", "llite.home-*.xattr_cache": True})
    )
    found = plan["units"]["gpufarm-lustre-parameters.service"]
    assert "ExecStart=-/usr/sbin/lctl set_param jobid_name=%%H:%%e\n" in found
    assert "ExecStart=-/usr/sbin/lctl set_param llite.home-*.xattr_cache=1\n" in found
    assert "WantedBy=lustre-home.mount\n" in found and "After=lustre-home.mount\n" in found


def test_servers_of_networks_that_tcp_does_not_reach_are_not_tried() -> None:
    both = {"source": "10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp:/home", "path": "/home"}
    assert lustre_client_plan(role_settings(file_systems=[both]))["servers"] == [["10.0.0.1", "10.0.0.2"]]
    fabric = [{"name": "o2ib", "interfaces": ["ib0"]}]
    assert lustre_client_plan(role_settings(file_systems=[both], networks=fabric))["servers"] == [[]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file_systems": [{**HOME, "source": "10.0.0:/home"}]}, "neither an IPv4 address nor"),
        ({"file_systems": [{**HOME, "source": "mgs_1@tcp:/home"}]}, "neither an IPv4 address nor"),
        (
            {"source": "server", "module_parameters": {"osc": {}}},
            "it to lustre_server_module_parameters",
        ),
        ({"file_systems": [{**HOME, "path": "home"}]}, "give an absolute one"),
        ({"file_systems": [{**HOME, "path": "/srv/../etc"}]}, "give an absolute one"),
        ({"file_systems": [{**HOME, "path": "/usr"}]}, "the machine's own"),
        ({"file_systems": [{**HOME, "option": []}]}, "has 'option'"),
        ({"file_systems": [{**HOME, "options": "flock"}]}, "no list"),
        ({"file_systems": [{**HOME, "options": ["flok"]}]}, "did you mean flock"),
        ({"file_systems": [HOME, HOME]}, "/lustre/home twice"),
        ({"mount_options": ["flok"]}, "did you mean flock"),
        ({"networks": []}, "lustre_client_networks is empty"),
        (
            {"networks": [{"name": "o2ib", "interfaces": ["ib0"]}]},
            "is in tcp, and lustre_client_networks has o2ib",
        ),
        ({"parameters": {"osc.*.max_rpcs": 8}}, "lustre_client_parameters has"),
        ({"module_parameters": {"osc": {"x": 1}}}, "lustre_client_module_parameters has"),
        ({"mount_timeout": 0}, "1 second or more"),
        ({"consumers": ["jupyterhub"]}, "no name of a unit"),
        ({"kernels": ["6.1; reboot"]}, "no release of a kernel"),
        ({"apt_url": ""}, "lustre_client_apt_url is ''"),
        ({"apt_key_fingerprint": "12"}, "40 hexadecimal digits"),
        ({"version": "2 15"}, "lustre_client_version is '2 15'"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    found = lustre_client_plan(role_settings(**changes))["problems"]
    assert any(words in one for one in found) and not any("\n" in one for one in found)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    settings = role_settings(file_systems=[{"source": "x", "path": "y"}], mount_timeout=0, consumers=["z"])
    found = lustre_client_plan(settings)["problems"]
    assert all(any(words in one for one in found) for words in ("'x'", "'y'", "mount_timeout", "'z'"))


MACHINE = {
    "installed": True,
    "kernels": [{"release": "6.1.0-44-amd64", "fits": True, "headers": True, "infiniband": ""}],
    "interfaces": {"lo": {"addresses": ["127.0.0.1"]}, "eth0": {"addresses": ["10.0.0.5"]}},
    "mounts": [],
    "lnet": {"written_by": ""},
    "names": {},
    "servers": {"10.0.0.1": "No route to host", "10.0.0.2": ""},
}
NAMED = {"file_systems": [{**HOME, "source": "mgs1:mgs2:/home"}]}


def machine_problems(settings: dict[str, Any], **machine: Any) -> list[str]:
    """Problems of a machine for settings."""
    return list(lustre_client_plan(settings, machine={**MACHINE, **machine}, host="gpu1")["problems"])


def test_one_server_that_answers_is_enough() -> None:
    assert machine_problems(role_settings()) == []


@pytest.mark.parametrize(
    ("changes", "machine", "words"),
    [
        (
            {},
            {"servers": {"10.0.0.1": "refused", "10.0.0.2": "refused"}},
            "No server of 10.0.0.1@tcp:10.0.0.2@tcp:/home",
        ),
        ({}, {"interfaces": {"eth0": {"addresses": []}}}, "eth0 of gpu1 has no IPv4 address"),
        ({}, {"interfaces": {"lo": {"addresses": []}}}, "gpu1 has no interface eth0, of tcp; it has none"),
        (
            {},
            {"mounts": [{"path": "/lustre/home", "source": "10.9.0.1@tcp:/old"}]},
            "is mounted from 10.9.0.1@tcp:/old",
        ),
        ({"source": "preinstalled"}, {"installed": False}, "gpu1 has no Lustre"),
        (
            {"source": "preinstalled"},
            {"kernels": [{"release": "6.1.0-45-amd64", "fits": False, "built_for": "", "version": ""}]},
            "no modules of Lustre: 6.1.0-45-amd64 has none. Install them, or name the kernels",
        ),
        (
            {"source": "preinstalled", "version": "2.15"},
            {"kernels": [{"release": "6.1", "fits": True, "built_for": "6.1", "version": "2.12.9"}]},
            "no modules of Lustre 2.15: 6.1 has those of 2.12.9 for 6.1.",
        ),
        ({}, {"lnet": {"written_by": "other"}}, "/etc/lnet.conf on gpu1 was not written by this role"),
        ({}, {"lnet": {"written_by": "lustre_server"}}, "set lustre_client_source to server"),
        (
            {"source": "server"},
            {"lnet": {"written_by": "lustre_client"}},
            "run lustre_client there with lustre_client_state absent, and then lustre_server",
        ),
        (NAMED, {}, "the host mgs1, which gpu1 finds no IPv4 address of"),
        (
            NAMED,
            {"names": {"mgs1": ["10.0.0.1"], "mgs2": ["10.0.0.2", "10.0.0.3"]}},
            "mgs2, which has the addresses 10.0.0.2 and 10.0.0.3; write the one that is meant",
        ),
        (NAMED, {"names": {"mgs1": ["127.0.1.1"], "mgs2": ["10.0.0.2"]}}, "that no other machine reaches"),
    ],
)
def test_what_a_machine_does_not_allow(changes: Any, machine: Any, words: str) -> None:
    assert any(words in one for one in machine_problems(role_settings(**changes), **machine))


def test_a_machine_that_serves_may_be_a_client_of_its_own_lnet() -> None:
    settings = role_settings(source="server", apt_url="", apt_key_url="", apt_key_fingerprint="")
    found = unit(lustre_client_plan(settings), "lustre-home.mount")
    assert "gpufarm-lustre-served.target" in found["After"] and "served.target" in found["Wants"]
    assert "served.target" not in lustre_client_plan(role_settings())["units"]["lustre-home.mount"]
    for owner in ("", "lustre_server"):  # the server may be set up later in the same run
        assert machine_problems(settings, lnet={"written_by": owner}) == []


def test_a_mount_has_addresses_in_place_of_names() -> None:
    names = {"mgs1": ["10.0.0.1"], "mgs2": ["10.0.0.2"]}
    plan = lustre_client_plan(role_settings(**NAMED), names)
    assert unit(plan, "lustre-home.mount")["What"] == "10.0.0.1@tcp:10.0.0.2@tcp:/home"
    assert plan["mounts"] == [{"path": "/lustre/home", "source": "10.0.0.1@tcp:10.0.0.2@tcp:/home"}]
    assert plan["names"] == ["mgs1", "mgs2"] == lustre_client_plan(role_settings(**NAMED))["names"]
    assert plan["servers"] == [["10.0.0.1", "10.0.0.2"]]
    servers = {"10.0.0.1": "refused", "10.0.0.2": ""}
    assert machine_problems(role_settings(**NAMED), names=names, servers=servers) == []


def test_a_mounted_file_system_needs_no_answer_of_its_servers() -> None:
    mounts = [{"path": "/lustre/home", "source": "10.0.0.1@tcp:10.0.0.2@tcp:/home"}]
    servers = {"10.0.0.1": "refused", "10.0.0.2": "refused"}
    assert machine_problems(role_settings(), mounts=mounts, servers=servers) == []


AVAILABLE = {
    "lustre-client-utils": ["2.15.9-1", "2.15.8-1"],
    "lustre-client-modules-dkms": ["2.15.8-1"],
    "lustre-client-modules-6.1.0-44-amd64": ["2.15.9-1", "2.15.8-1"],
    "lustre-client-modules-6.1.0-43-amd64": ["2.15.8-1"],
}


@pytest.mark.parametrize(
    ("changes", "kernels", "packages"),
    [
        (
            {},
            ["6.1.0-44-amd64"],
            ["lustre-client-utils=2.15.9-1", "lustre-client-modules-6.1.0-44-amd64=2.15.9-1"],
        ),
        (
            {"version": "2.15.8"},
            ["6.1.0-43-amd64", "6.1.0-44-amd64"],
            [
                "lustre-client-utils=2.15.8-1",
                "lustre-client-modules-6.1.0-43-amd64=2.15.8-1",
                "lustre-client-modules-6.1.0-44-amd64=2.15.8-1",
            ],
        ),
        (
            {"version": "2.15.8", "modules": "dkms"},
            ["6.1.0-99-amd64"],
            ["lustre-client-utils=2.15.8-1", "lustre-client-modules-dkms=2.15.8-1"],
        ),
    ],
)
def test_packages_of_one_version_for_every_kernel(changes: Any, kernels: Any, packages: Any) -> None:
    told = [{"release": one, "headers": True, "infiniband": ""} for one in kernels]
    machine = {**MACHINE, "kernels": told}
    plan = lustre_client_plan(role_settings(**changes), machine=machine, offered=AVAILABLE)
    assert plan["packages"] == packages
    assert plan["version"] == packages[0].partition("=")[2]
    assert "packages" not in lustre_client_plan(role_settings(**changes), machine=machine)


@pytest.mark.parametrize(
    ("changes", "kernel", "words"),
    [
        ({"version": "2.16"}, "6.1.0-44-amd64", "no lustre-client-utils 2.16; it has 2.15.9-1, 2.15.8-1"),
        (
            {},
            "6.1.0-43-amd64",
            "no modules of Lustre 2.15.9-1 for the kernel 6.1.0-43-amd64; it has them for 6.1.0-44-amd64",
        ),
        ({"modules": "dkms"}, "6.1.0-44-amd64", "no lustre-client-modules-dkms 2.15.9-1"),
        (
            {"modules": "dkms", "version": "2.15.8"},
            "6.1.0-44-amd64",
            "no headers of the kernel 6.1.0-44-amd64",
        ),
    ],
)
def test_packages_that_do_not_fit(changes: Any, kernel: str, words: str) -> None:
    machine = {**MACHINE, "kernels": [{"release": kernel, "headers": False}]}
    plan = lustre_client_plan(role_settings(**changes), machine=machine, offered=AVAILABLE)
    [told] = plan["problems"]
    assert words in told and "packages" not in plan
