"""Whether a machine can have interfaces, and whether it has them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._network import machine
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.files import (
    hides,
    of_ifupdown,
    values,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.plan import plan
from hypothesis import given
from hypothesis import strategies as st


def link(name: str, *addresses: str, **more: Any) -> dict[str, Any]:
    """Output of ip about an interface that is up (recorded with iproute2 6.1 and 6.15, shortened)."""
    pairs = [one.split("/") for one in addresses]
    known = [{"local": one, "prefixlen": int(length), "scope": "global"} for one, length in pairs]
    here = {"local": "fe80::1", "prefixlen": 64, "scope": "link"}
    return {"ifname": name, "mtu": 1500, "operstate": "UP", "addr_info": [*known, here], **more}


def member(name: str, of: str, **state: Any) -> dict[str, Any]:
    data = {"state": "ACTIVE", "mii_status": "UP", "ad_aggregator_id": 1, **state}
    return link(name, master=of, linkinfo={"info_slave_kind": "bond", "info_slave_data": data})


def bond(
    name: str, *addresses: str, mode: str = "802.3ad", partner: str = "b6:f7:62:d4:e1:30"
) -> dict[str, Any]:
    data = {"mode": mode, "ad_info": {"aggregator": 1, "partner_mac": partner}}
    return link(name, *addresses, linkinfo={"info_kind": "bond", "info_data": data})


BOND = {"name": "bond0", "members": ["eth1", "eth2"], "addresses": ["10.1.0.7/16"], "mode": "802.3ad"}
VLAN = {
    "name": "v5",
    "vlan": 5,
    "over": "bond0",
    "addresses": ["10.2.0.7/16"],
    "routes": {"10.3.0.0/16": "10.2.0.1", "10.4.0.1/32": "10.2.0.1"},
}
OURS = "/etc/systemd/network/05-gpufarm-"
MACHINE = {
    "name": "n1",
    "links": [link("lo"), link("eth0", "192.0.2.7/24"), link("eth1"), link("eth2")],
    "connection": "192.0.2.7",
    "networkd": {"running": True, "files": {"eth0": "/run/systemd/network/90-eth0.network"}},
    "files": {"/run/systemd/network/90-eth0.network": "[Match]\nName=eth0\n"},
    "ifupdown": {},
    "networkmanager": [],
}


BONDED = [member("eth1", "bond0"), member("eth2", "bond0"), bond("bond0", "10.1.0.7/16")]


def refused(*interfaces: dict[str, Any], **facts: Any) -> list[str]:
    settings = {"interfaces": list(interfaces or [BOND, VLAN]), "confirm_seconds": 120}
    found: list[str] = plan(settings, machine={**MACHINE, **facts})["problems"]
    return found


def test_a_bond_of_free_interfaces_is_fine() -> None:
    assert refused() == []


def test_a_machine_that_has_the_interfaces_is_fine_again() -> None:
    vlan = link("v5", "10.2.0.7/16", link="bond0", linkinfo={"info_kind": "vlan"})
    links = [link("eth0", "192.0.2.7/24"), *BONDED, vlan]
    files = {f"{OURS}{name}": "" for name in ("bond0.netdev", "v5.netdev", "bond0.network", "v5.network")}
    assert refused(links=links, files=files) == []


@pytest.mark.parametrize(
    ("interfaces", "facts", "words"),
    [
        ([BOND], {"networkd": {"running": False, "files": {}}}, "systemd-networkd does not run on n1"),
        (
            [{"name": "eth7"}],
            {},
            "n1: there is no interface eth7, only eth0, eth1, eth2; correct",
        ),
        (
            [BOND],
            {"links": [link("eth1", master="br0"), link("eth2")]},
            "eth1 is part of br0, which is not of the role network",
        ),
        ([{"name": "old"}], {"links": [bond("old")]}, "old is a bond; declare its members"),
        (
            [{**BOND, "mtu": 9000}],
            {"links": [link("eth1", max_mtu=4000), link("eth2")]},
            "can have 4000 at most",
        ),
        ([BOND], {"links": [link("eth1", max_mtu=1400), link("eth2")]}, "would have an MTU of 1500 bytes"),
        (
            [BOND],
            {"links": [link("eth1"), link("eth2"), bond("bond0")]},
            "bond0 is there and not of the role",
        ),
        (
            [BOND],
            {"ifupdown": {"/etc/network/interfaces": "auto lo\nallow-hotplug eth2\n"}},
            "eth2 is configured by ifupdown in /etc/network/interfaces; let systemd-networkd have it first.",
        ),
        ([BOND], {"networkmanager": ["eth1"]}, "eth1 is configured by NetworkManager"),
        (
            [BOND],
            {"links": [link("eth1", "10.9.0.7/16"), link("eth2")]},
            "eth1 has 10.9.0.7/16, which systemd-networkd has not given and could not give back",
        ),
        (
            [BOND],
            {"files": {"/etc/systemd/network/00-all.network": "[Match]\nName=bond* wl*\n"}},
            "00-all.network sorts before the files of the role network and may match bond0",
        ),
        (
            [{**BOND, "members": ["eth0", "eth1"]}],
            {},
            "Ansible is connected to 192.0.2.7 of eth0, and no declared interface has that address",
        ),
        (
            [BOND],
            {"links": [*BONDED, link("v6", "192.0.2.7/24")], "files": {f"{OURS}v6.network": ""}},
            "Ansible is connected to 192.0.2.7 of v6, and no declared interface has that address",
        ),
        (
            [{**BOND, "addresses": ["192.0.2.7/26"]}],
            {},
            "eth0 has 192.0.2.7 already; declare eth0 too, or another address.",
        ),
    ],
)
def test_what_a_machine_cannot_have_is_refused(
    interfaces: list[dict[str, Any]], facts: dict[str, Any], words: str
) -> None:
    assert any(words in problem for problem in refused(*interfaces, **facts))


def test_the_bond_may_take_the_address_of_the_connection() -> None:
    assert refused({**BOND, "members": ["eth0", "eth1"], "addresses": ["192.0.2.7/24"]}) == []


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        ("", True),
        ("Name=eth1", True),
        ("Name=eth0 en*", True),
        ("Name=eth0", False),
        ("Name=!eth0 lo", True),
        ("Name=!eth*", False),
        ("# Name=eth0", True),
        ("Name=eth0 \\\n eth1", True),
        ("Driver=mlx5_core", True),
        ("Driver=mlx5_core\nName=eth0", False),
        ("MACAddress=52:54:00:AA:BB:01", True),
        ("PermanentMACAddress=52-54-00-aa-bb-02", False),
    ],
)
def test_a_file_that_may_match_is_found(condition: str, matches: bool) -> None:
    files = {"/etc/systemd/network/01-other.network": f"[Match]\n{condition}\n\n[Network]\nName=eth0\n"}
    found = hides(files, "05-gpufarm-eth1.network", ["eth1", "enp1s0"], "52:54:00:aa:bb:01")
    assert bool(found) is matches


def test_a_file_that_sorts_later_hides_nothing_and_of_two_the_first_counts() -> None:
    later = {
        "/etc/systemd/network/10-a.network": "[Match]\n",
        "/etc/systemd/network/01-a.netdev": "[Match]\n",
    }
    assert hides(later, "05-gpufarm-eth1.network", ["eth1"], "") == ""
    earlier = {
        "/etc/systemd/network/00-a.network": "",
        "/etc/systemd/network/02-a.network": "[Match]\n",
        "/run/systemd/network/01-a.network": "[Match]\n",
    }
    assert hides(earlier, "05-gpufarm-eth1.network", ["eth1"], "") == "/run/systemd/network/01-a.network"


def test_interfaces_of_ifupdown_are_those_of_iface_auto_and_allow() -> None:
    text = "auto lo eth0\n# auto eth9\niface eth1 inet6 auto\n  mtu 9000\nallow-hotplug /en*\\\n eth2\n"
    assert of_ifupdown(text) == {"lo", "eth0", "eth1", "/en*", "eth2"}


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    assert all(key == key.strip() for key, _ in values(text, "Match"))
    assert isinstance(of_ifupdown(text), set)


WELL: dict[str, Any] = {
    "links": [
        member("eth1", "bond0"),
        member("eth2", "bond0"),
        bond("bond0", "10.1.0.7/16"),
        link(
            "v5",
            "10.2.0.7/16",
            link="bond0",
            linkinfo={"info_kind": "vlan", "info_data": {"id": 5}},
            mtu=1400,
        ),
    ],
    "routes": [
        {"dst": "10.3.0.0/16", "gateway": "10.2.0.1", "dev": "v5"},
        {"dst": "10.4.0.1", "gateway": "10.2.0.1", "dev": "v5"},
    ],
    "speeds": {"eth1": 25000, "eth2": 25000, "bond0": 50000},
}


def differences(**changed: Any) -> list[str]:
    wanted = plan({"interfaces": [{**BOND, "speed": 25000}, {**VLAN, "mtu": 1400}], "confirm_seconds": 120})[
        "expected"
    ]
    return machine.deviations(wanted, **{**WELL, **changed})


def with_link(name: str, **more: Any) -> dict[str, Any]:
    links = copy.deepcopy(WELL["links"])
    next(one for one in links if one["ifname"] == name).update(more)
    return {"links": links}


def slave(**state: Any) -> dict[str, Any]:
    return {"linkinfo": member("eth2", "bond0", **state)["linkinfo"]}


def test_a_network_as_declared_has_no_difference() -> None:
    assert differences() == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"links": WELL["links"][:3]}, "v5 is not there."),
        (with_link("v5", operstate="DOWN"), "v5 is DOWN."),
        (with_link("v5", mtu=1500), "v5 has an MTU of 1500 bytes, not 1400."),
        (with_link("v5", addr_info=[]), "v5 does not have the address 10.2.0.7/16."),
        ({"routes": WELL["routes"][1:]}, "v5 does not have the route to 10.3.0.0/16 via 10.2.0.1."),
        ({"routes": WELL["routes"][:1]}, "v5 does not have the route to 10.4.0.1/32 via 10.2.0.1."),
        (with_link("v5", link="eth0"), "v5 is not the VLAN 5 over bond0."),
        (
            with_link("bond0", **bond("bond0", "10.1.0.7/16", mode="active-backup")),
            "bond0 is in mode active-backup",
        ),
        (
            with_link("bond0", **bond("bond0", "10.1.0.7/16", partner="00:00:00:00:00:00")),
            "bond0 has no partner: nothing at the other end of its links speaks LACP.",
        ),
        (with_link("eth2", master="other"), "eth2 is not in bond0."),
        (with_link("eth2", **slave(mii_status="DOWN")), "eth2 of bond0 has no link."),
        (with_link("eth2", **slave(ad_aggregator_id=2)), "eth2 is not in the aggregator of bond0"),
        ({"links": [*WELL["links"], member("eth3", "bond0")]}, "bond0 has eth3 too."),
        ({"speeds": {"eth1": 25000, "eth2": 10000}}, "eth2 has 10000 Mbit/s, not 25000 or more."),
        ({"speeds": {"eth1": 25000}}, "eth2 has no known Mbit/s, not 25000 or more."),
    ],
)
def test_each_difference_is_told_alone(changed: dict[str, Any], words: str) -> None:
    (difference,) = differences(**changed)
    assert words in difference


def test_a_summary_tells_partner_and_speed() -> None:
    assert machine.summary("bond0", WELL["links"], WELL["speeds"]) == {
        "name": "bond0",
        "addresses": ["10.1.0.7/16"],
        "mtu": 1500,
        "speed": 50000,
        "partner": "b6:f7:62:d4:e1:30",
    }
    assert machine.summary("v5", WELL["links"], {"v5": -1})["speed"] == 0
