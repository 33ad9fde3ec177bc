"""Interfaces that a site declares: which are refused, and the files that the others result in."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import configparser
import ipaddress
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.files import PREFIX
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.plan import plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.request import interface_address
from hypothesis import given
from hypothesis import strategies as st

BOND = {"name": "bond0", "members": ["eth1", "eth2"], "addresses": ["10.1.0.7/16"]}


def made(*interfaces: dict[str, Any], seconds: int = 120) -> dict[str, Any]:
    return plan({"interfaces": list(interfaces), "confirm_seconds": seconds, "try_failover": False})


def test_a_bond_with_vlan_becomes_files() -> None:
    result = made(
        {**BOND, "mode": "802.3ad", "mtu": 9000},
        {
            "name": "storage",
            "vlan": 5,
            "over": "bond0",
            "addresses": ["FD00::7/64", "10.2.0.7/255.255.0.0"],
            "routes": {"10.3.0.0/16": "10.2.0.1", "default": "fd00::1"},
        },
    )
    texts = {name: text.partition("\n")[2] for name, text in result["files"].items()}
    assert texts == {
        "05-gpufarm-bond0.netdev": (
            "[NetDev]\nName=bond0\nKind=bond\n\n[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\n"
            "LACPTransmitRate=fast\nTransmitHashPolicy=layer3+4\n"
        ),
        "05-gpufarm-bond0.network": (
            "[Match]\nName=bond0\n\n[Link]\nMTUBytes=9000\n\n"
            "[Network]\nAddress=10.1.0.7/16\nVLAN=storage\nIPv6AcceptRA=no\n"
        ),
        "05-gpufarm-eth1.network": "[Match]\nName=eth1\n\n[Network]\nBond=bond0\n",
        "05-gpufarm-eth2.network": "[Match]\nName=eth2\n\n[Network]\nBond=bond0\n",
        "05-gpufarm-storage.netdev": "[NetDev]\nName=storage\nKind=vlan\n\n[VLAN]\nId=5\n",
        "05-gpufarm-storage.network": (
            "[Match]\nName=storage\n\n[Network]\nAddress=fd00::7/64\nAddress=10.2.0.7/16\nIPv6AcceptRA=no\n\n"
            "[Route]\nDestination=10.3.0.0/16\nGateway=10.2.0.1\n\n[Route]\nGateway=fd00::1\n"
        ),
    }
    assert result["bonds"] == [
        {"name": "bond0", "members": ["eth1", "eth2"], "gateways": ["10.2.0.1", "fd00::1"]}
    ]


def test_active_backup_is_the_mode_that_asks_nothing_of_a_switch() -> None:
    files = made({**BOND, "primary": "eth2"})["files"]
    assert "Mode=active-backup\n" in files["05-gpufarm-bond0.netdev"]
    assert "LACP" not in files["05-gpufarm-bond0.netdev"]
    assert "PrimarySlave=yes\n" in files["05-gpufarm-eth2.network"]
    assert "PrimarySlave" not in files["05-gpufarm-eth1.network"]


@pytest.mark.parametrize(("mtu", "from_the_start"), [(1400, True), (1500, False), (0, False)])
def test_a_bond_is_made_with_an_mtu_that_its_members_can_have(mtu: int, from_the_start: bool) -> None:
    device = made({**BOND, "mtu": mtu})["files"]["05-gpufarm-bond0.netdev"]
    assert (f"[NetDev]\nName=bond0\nKind=bond\nMTUBytes={mtu}\n" in device) == from_the_start
    assert ("MTUBytes" in device) == from_the_start


VLAN = {"name": "v5", "vlan": 5, "over": "bond0"}


@pytest.mark.parametrize(
    ("interfaces", "words"),
    [
        ([], "network_interfaces has no interface, so there is nothing to configure"),
        ([{"name": "eth0:1"}], "'eth0:1' cannot be the name of an interface"),
        ([{"name": "sixteen-letters-"}], "'sixteen-letters-' cannot be the name"),
        ([{"name": "eth*"}], "'eth*' cannot be the name"),
        *(([{"name": name}], f"'{name}' cannot be the name") for name in ("lo", "all", "default", "12")),
        ([{"name": "a\n[Network]"}], "cannot be the name"),
        ([{**BOND, "members": ["eth1", "../x"]}], "'../x' cannot be the name"),
        ([{"name": "eth1"}, {"name": "eth1"}], "eth1 is declared 2 times"),
        ([BOND, {"name": "eth1"}], "eth1 is declared and is a member of a bond"),
        ([BOND, {"name": "bond1", "members": ["eth2"]}], "eth2 is a member 2 times"),
        ([{**BOND, "members": ["eth1", "eth1"]}], "eth1 is a member 2 times"),
        ([{**BOND, "vlan": 5, "over": "bond0"}], "bond0 has members and is a VLAN"),
        ([{**BOND, "primary": "eth3"}], "bond0 has the primary eth3, which must be a member"),
        ([{**BOND, "primary": "eth1", "mode": "802.3ad"}], "of a bond in mode active-backup"),
        ([BOND, {"name": "v5", "vlan": 5}], "v5 is a VLAN only with both vlan and over"),
        ([BOND, {"name": "v5", "over": "bond0"}], "v5 is a VLAN only with both vlan and over"),
        ([VLAN], "v5 runs over bond0, which is no interface of the list or a VLAN"),
        ([BOND, VLAN, {"name": "v6", "vlan": 6, "over": "v5"}], "v6 runs over v5, which is no interface"),
        ([BOND, {**VLAN, "vlan": 4095}], "v5 has the VLAN 4095; choose 1 to 4094"),
        ([BOND, {**VLAN, "vlan": -1}], "v5 has the VLAN -1"),
        ([BOND, {**VLAN, "speed": 1000}], "v5 is a VLAN and has a speed"),
        ([BOND, VLAN, {**VLAN, "name": "v6"}], "v5 and v6 have the same VLAN 5 over bond0"),
        ([{**BOND, "mtu": 1279}], "bond0 has an MTU of 1279 bytes; choose 1280 to 65535"),
        ([{**BOND, "mtu": 65536}], "bond0 has an MTU of 65536 bytes"),
        ([BOND, {**VLAN, "mtu": 1501}], "v5 has an MTU of 1501 bytes, more than bond0, over which it runs"),
        (
            [{"name": "e", "addresses": ["10.1.0.7"]}],
            "e has the address '10.1.0.7', which is none of a machine",
        ),
        ([{"name": "e", "addresses": ["10.1.0.0/16"]}], "'10.1.0.0/16', which is none of a machine"),
        ([{"name": "e", "addresses": ["10.1.255.255/16"]}], "which is none of a machine"),
        ([{"name": "e", "addresses": ["127.0.0.2/8"]}], "which is none of a machine"),
        ([{"name": "e", "addresses": ["ff02::1/64"]}], "which is none of a machine"),
        ([{"name": "e", "addresses": ["fd00::1%x/64"]}], "which is none of a machine"),
        ([BOND, {"name": "e", "addresses": ["10.1.0.7/24"]}], "bond0 and e have the same address 10.1.0.7"),
        ([{**BOND, "routes": {"x": "10.1.0.1"}}], "bond0 has the route to 'x' via '10.1.0.1'"),
        ([{**BOND, "routes": {"default": "gw"}}], "bond0 has the route to 'default' via 'gw'"),
        (
            [{**BOND, "routes": {"default": "10.2.0.1"}}],
            "route to default via 10.2.0.1, which is in no network of its addresses",
        ),
        ([{**BOND, "routes": {"fd00::/64": "10.1.0.1"}}], "bond0 has the route to 'fd00::/64' via"),
        (
            [{"name": "e", "addresses": ["fd00::7/64"], "routes": {"default": "fd00::1%x\n[Link]"}}],
            "e has the route to 'default' via 'fd00::1%x\\n[Link]'",
        ),
        (
            [{"name": "e", "addresses": ["fd00::7/64"], "routes": {"fd01::%x\ny/64": "fd00::1"}}],
            "e has the route to 'fd01::%x\\ny/64'",
        ),
        (
            [
                {**BOND, "routes": {"default": "10.1.0.1"}},
                {
                    "name": "e",
                    "addresses": ["10.2.0.7/16"],
                    "routes": {"default": "10.2.0.1"},
                },
            ],
            "bond0 and e have the same route to default of IPv4; keep one of them",
        ),
        (
            [
                {**BOND, "routes": {"default": "10.1.0.1"}},
                {"name": "e", "addresses": ["10.2.0.7/16"], "routes": {"0.0.0.0/0": "10.2.0.1"}},
            ],
            "bond0 and e have the same route to default of IPv4",
        ),
        (
            [
                {"name": "d", "addresses": ["fd00::7/64"], "routes": {"FD02:0::/64": "fd00::1"}},
                {"name": "e", "addresses": ["fd01::7/64"], "routes": {"fd02::/64": "fd01::1"}},
            ],
            "d and e have the same route to fd02::/64 of IPv6",
        ),
    ],
)
def test_contradictions_are_refused_in_one_sentence(interfaces: list[dict[str, Any]], words: str) -> None:
    problems = made(*interfaces)["problems"]
    assert any(words in problem and "\n" not in problem.replace("\\n", "") for problem in problems), problems


@pytest.mark.parametrize("seconds", [29, 901])
def test_a_time_in_which_nobody_can_confirm_is_refused(seconds: int) -> None:
    (problem,) = made(BOND, seconds=seconds)["problems"]
    assert problem.startswith(f"network_confirm_seconds is {seconds}, so a machine that is lost")
    assert made(BOND, seconds=30 if seconds < 30 else 900)["problems"] == []


@given(st.one_of(st.text(max_size=20), st.builds("{}/{}".format, st.ip_addresses(), st.integers(-1, 130))))
def test_an_address_is_one_that_a_machine_can_have_or_is_refused(text: str) -> None:
    address = interface_address(text)
    if address is None:
        return
    assert not address.is_multicast and not address.is_loopback and not address.is_unspecified
    assert str(ipaddress.ip_interface(text)) == str(address)
    assert text.isprintable() and " " not in text


NAMES = st.sampled_from(["eth0", "eth1", "eth2", "eth3", "bond0", "bond1", "v5", "v6", "lo", "a b"])
ENTRIES = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "members": st.lists(NAMES, max_size=3),
        "mode": st.sampled_from(["active-backup", "802.3ad"]),
        "primary": NAMES,
        "vlan": st.integers(0, 5000),
        "over": NAMES,
        "mtu": st.sampled_from([0, 1000, 1500, 9000]),
        "addresses": st.lists(st.sampled_from(["10.0.0.1/24", "10.0.0.2/24", "fd00::1/64", "x"]), max_size=2),
    },
)


@given(st.lists(ENTRIES, max_size=4))
def test_declared_interfaces_are_refused_or_each_has_one_file_that_names_it(
    entries: list[dict[str, Any]],
) -> None:
    result = made(*entries)
    if result["problems"]:
        return
    members = {member: entry["name"] for entry in entries for member in entry.get("members", [])}
    names = {entry["name"] for entry in entries}
    networks = {name for name in result["files"] if name.endswith(".network")}
    assert networks == {f"{PREFIX}{name}.network" for name in names | members.keys()}
    for name in names | members.keys():
        parsed = configparser.ConfigParser(strict=False, interpolation=None)
        parsed.read_string(result["files"][f"{PREFIX}{name}.network"])
        assert parsed["Match"]["Name"] == name
        assert parsed["Network"].get("Bond") == members.get(name)
    devices = {entry["name"] for entry in entries if entry.get("members") or entry.get("vlan")}
    assert {name for name in result["files"] if name.endswith(".netdev")} == {
        f"{PREFIX}{name}.netdev" for name in devices
    }
