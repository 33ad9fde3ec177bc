"""Networks and addresses are given out without collisions, and their end is told in one sentence."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import LabError
from lab.network import SUPERNET, Network, free_addresses, free_subnet

SUBNET = IPv4Network("10.77.3.0/24")


@given(st.sets(st.integers(0, 255), max_size=255))
def test_a_free_network_overlaps_none_in_use(used: set[int]):
    networks = [IPv4Network(f"10.77.{number}.0/24") for number in used]
    found = free_subnet([*networks, IPv4Network("192.168.0.0/16")])
    assert found.subnet_of(SUPERNET)
    assert not any(found.overlaps(network) for network in networks)


def test_a_wide_route_of_the_machine_is_avoided():
    assert free_subnet([IPv4Network("10.77.0.0/18")]) == IPv4Network("10.77.64.0/24")


def test_no_network_left():
    with pytest.raises(LabError, match=r"all 256 networks of 10\.77\.0\.0/16 are in use"):
        free_subnet([IPv4Network("10.0.0.0/8")])


@given(st.sets(st.integers(11, 250), max_size=200), st.integers(0, 40))
def test_addresses_are_new_and_inside(taken: set[int], count: int):
    used = {f"10.77.3.{last}" for last in taken}
    given_out = free_addresses(SUBNET, used, count)
    assert len(set(given_out)) == count
    assert not used & set(given_out)
    assert all(IPv4Address(address) in SUBNET for address in given_out)


def test_a_bench_is_full():
    taken = free_addresses(SUBNET, [], 240)
    with pytest.raises(LabError, match="room for 240 hosts: 1 more were asked for, 0 fit"):
        free_addresses(SUBNET, taken, 1)


def test_interface_names_fit_into_the_kernels_15_characters():
    network = Network("0123abcd")
    assert len(network.bridge) <= 15
    links = {network.link("10.77.255.250"), network.link("10.77.255.250", 1), network.link("10.77.255.25", 1)}
    assert len(links) == 3
    assert max(map(len, [*links, network.second_bridge])) <= 15


def test_hardware_addresses_are_local_and_differ_between_hosts_and_benches() -> None:
    addresses = [
        Network(bench).hardware_address(address, number)
        for bench in ("0011aabb", "0011aabc")
        for number in (0, 1)
        for address in ("10.77.0.1", "10.77.0.11", "10.77.0.254")
    ]
    assert len(set(addresses)) == len(addresses)
    assert all(int(address[:2], 16) & 0b11 == 0b10 for address in addresses), "unicast, locally administered"
    assert addresses[1] == "02:0b:00:11:aa:bb"
