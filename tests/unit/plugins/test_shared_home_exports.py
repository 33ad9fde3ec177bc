# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Homes that one machine of a cluster exports to the others."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import exports
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.settings import plan
from hypothesis import given
from hypothesis import strategies as st
from shared_home_settings import role_settings

NODES = ["10.0.0.2", "10.0.0.3"]


def homes(*, serves: bool = False, **changes: Any) -> dict[str, Any]:
    machines = {"serves": serves, "server_address": "10.0.0.1", "client_addresses": NODES}
    return role_settings(**{"kind": "cluster", "path": "/srv/home", **machines, **changes})


def test_the_server_exports_a_folder_in_which_nothing_runs_as_root() -> None:
    done = plan(homes(serves=True))
    assert done["exports"][exports.NAME].splitlines()[1] == (
        "/srv/home 10.0.0.2(rw,sync,no_root_squash,subtree_check)"
        " 10.0.0.3(rw,sync,no_root_squash,subtree_check)"
    )
    assert (
        "What=/srv/home\nWhere=/srv/home\nType=none\nOptions=bind,nosuid,nodev\n"
        in (done["units"]["srv-home.mount"])
    )
    assert done["mounts"][0]["path"] == "/srv/home" and done["command"]["mounted"] is True
    assert (done["packages"], done["folder"]) == (["nfs-kernel-server"], True)


def test_a_disk_of_the_server_is_a_file_system_of_its_own() -> None:
    done = plan(homes(serves=True, source="UUID=1-2", quota="1G"), "xfs")
    assert "(rw,sync,no_root_squash,no_subtree_check)" in done["exports"][exports.NAME]
    assert "What=/dev/disk/by-uuid/1-2\n" in done["units"]["srv-home.mount"]
    assert "Options=nosuid,nodev,uquota\n" in done["units"]["srv-home.mount"]
    assert done["packages"] == ["nfs-kernel-server", "quota"] and done["folder"] is False


@pytest.mark.parametrize(
    ("address", "source"), [("10.0.0.1", "10.0.0.1:/srv/home"), ("fd00::1", "[fd00::1]:/srv/home")]
)
def test_all_others_mount_the_servers(address: str, source: str) -> None:
    settings = homes(server_address=address, source="UUID=1-2", quota="1G", options=["noatime"])
    done = plan(settings, "nfs")
    assert (
        f"What={source}\nWhere=/srv/home\nType=nfs\nOptions=nosuid,nodev,noatime\n"
        in (done["units"]["srv-home.mount"])
    )
    assert (done["exports"], done["mounts_nfs"], done["packages"]) == ({}, True, ["nfs-common"])
    assert done["command"]["limits"] is False


def test_root_of_a_client_has_no_rights_where_the_server_makes_the_homes() -> None:
    text = plan(homes(serves=True, create=False))["exports"][exports.NAME]
    assert "root_squash" in text and "no_root_squash" not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server_address": ""}, "shared_home_server is empty; name the machine"),
        ({"serves": True, "client_addresses": []}, "shared_home_clients is empty"),
        ({"client_addresses": ["*"]}, "names '*', which is no machine, address or network"),
        ({"client_addresses": ["10.0.0.2(rw)"]}, "names '10.0.0.2(rw)', which is no machine"),
        ({"client_addresses": ["10.0.0.2 10.0.0.3"]}, "which is no machine"),
        ({"client_addresses": ["-"]}, "which is no machine"),
        ({"source": "nfs:/home"}, "with shared_home_kind cluster give UUID=..."),
        ({"options": ["soft"]}, "what users have written can be lost"),
        ({"options": ["commit=5"]}, "'commit' is no option of nfs"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    found = plan(homes(**changes))["problems"]
    assert len(found) == 1 and words in found[0] and found[0].endswith(".")


@given(st.text(max_size=20))
def test_no_client_brings_options_or_other_clients(client: str) -> None:
    done = plan(homes(serves=True, client_addresses=[client]))
    if not done["problems"]:
        assert exports.clients_of(done["exports"][exports.NAME]) == [client]
        assert not set(client) & set(" \t\n()*?#\\\"'@")


def test_networks_of_both_kinds_are_clients() -> None:
    given_ = ["10.0.0.0/24", "fd00::/64", "node1.example.org"]
    done = plan(homes(serves=True, client_addresses=given_))
    assert exports.clients_of(done["exports"][exports.NAME]) == given_


INFO = 'clientid: 0x1\naddress: "{}"\nstatus: {}\nname: "Linux NFSv4.2 node"\n'
HERE = [INFO.format(address, "confirmed") for address in ("10.0.0.2:712", "10.9.9.9:714", "[fd00::2]:715")]
NAMES = {"node1.example.org": ["10.0.0.2", "fd00::2"], "node2": ["10.0.0.3", "fe80::3%eth0"]}


def connected(infos: list[str], *clients: str) -> list[str]:
    return exports.connected(infos, clients, lambda name: NAMES.get(name, []))


def test_only_clients_that_are_there_count_as_connected() -> None:
    infos = [*HERE, INFO.format("10.0.0.3:713", "courtesy"), "", 'address: "unknown"\n']
    assert connected(infos, *NODES, "fd00::2") == ["10.0.0.2", "fd00::2"]
    # Kernels before 5.13 tell no status.
    assert connected(['address: "10.0.0.2:712"\n'], *NODES) == ["10.0.0.2"]


@pytest.mark.parametrize(
    ("clients", "found"),
    [
        (["10.0.0.0/24"], ["10.0.0.2"]),
        (["fd00::/64", "10.8.0.0/16"], ["fd00::2"]),
        (["FD00:0:0:0:0:0:0:2"], ["fd00::2"]),
        (["node1.example.org"], ["10.0.0.2", "fd00::2"]),
        (["node2"], []),
        # It may be any of them.
        (["renamed"], ["10.0.0.2", "10.9.9.9", "fd00::2"]),
        ([], []),
    ],
)
def test_clients_are_found_by_their_networks_names_and_other_spellings(
    clients: list[str], found: list[str]
) -> None:
    assert connected(HERE, *clients) == found
    assert connected([], *clients) == []


@given(st.lists(st.text(max_size=20)), st.text(max_size=20))
def test_whatever_the_kernel_and_the_resolver_tell_is_read(told: list[str], client: str) -> None:
    infos = [f"address: {text}\n" for text in told]
    assert isinstance(exports.connected([*infos, *HERE], [client], lambda _: told), list)


@pytest.mark.parametrize(
    ("files", "some"), [([], False), (["", "# /srv *(rw)\n\n"], False), (["# a\n /srv *(rw)\n"], True)]
)
def test_exports_of_others_are_seen(files: list[str], some: bool) -> None:
    assert exports.exports_something(files) is some
