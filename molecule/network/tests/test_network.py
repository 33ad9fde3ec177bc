"""Bonds and VLANs carry data, also while links and partners are lost."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

SWITCH = "192.0.2.254"


def link(host, name):
    (found,) = json.loads(host.check_output("ip -json -details link show dev %s", name))
    return found


def ports(host):
    return link(host, "lag")["linkinfo"]["info_data"]["ad_info"]["num_ports"]


def answers(host, *options):
    return host.run(f"ping -q -c 3 -W 2 {' '.join(options)} {SWITCH}").rc == 0


def test_the_bond_carries_the_connection_over_its_primary(host):
    bond = link(host, "bond0")["linkinfo"]["info_data"]
    assert bond["mode"] == "active-backup"
    assert bond["active_slave"] == "eth0"
    assert link(host, "eth1")["master"] == "bond0"
    assert " dev bond0 " in host.check_output("ip route show default")


def test_members_join_a_bond_at_the_first_try(host):
    """networkd does not try again for sure, as at a boot."""
    assert "calling dev_set_mtu" not in host.check_output("journalctl --dmesg")


def test_packets_of_the_declared_size_pass_the_vlan_over_lacp(host):
    headers = 28  # of IPv4 and ICMP
    assert answers(host, "-M", "do", "-s", str(1900 - headers))
    assert not answers(host, "-M", "do", "-s", str(1901 - headers))


def test_a_link_of_lacp_is_lost_and_comes_back(host, eventually):
    assert ports(host) == 2
    host.check_output("ip -n switch link set s1 down")
    try:
        eventually(lambda: ports(host) == 1)
        assert answers(host)
    finally:
        host.check_output("ip -n switch link set s1 up")
    eventually(lambda: ports(host) == 2)
    assert answers(host)


def test_the_partner_of_lacp_is_lost_and_comes_back(host, eventually):
    host.check_output("ip -n switch link set sw down")
    try:
        eventually(lambda: not answers(host))
    finally:
        host.check_output("ip -n switch link set sw up")
    eventually(lambda: ports(host) == 2 and answers(host))
