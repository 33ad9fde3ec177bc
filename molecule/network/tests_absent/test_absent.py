"""The machine has the network that it had before."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_the_interface_has_its_former_address_and_no_device_of_the_role_is_left(host):
    links = {one["ifname"]: one for one in json.loads(host.check_output("ip -json -details address show"))}
    assert not links.keys() & {"bond0", "lag", "storage", "away"}
    assert not [name for name, one in links.items() if "master" in one]
    assert [one["prefixlen"] for one in links["eth0"]["addr_info"] if one["family"] == "inet"] == [24]
    assert " dev eth0 " in host.check_output("ip route show default")


def test_no_timer_is_left(host):
    assert "gpufarm" not in host.check_output("systemctl list-units --all --plain --no-legend '*gpufarm*'")
