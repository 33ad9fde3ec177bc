# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that are given by name or address."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.filter import machine_addresses, machine_names

MACHINES: dict[str, dict[str, Any]] = {
    "m1": {"ansible_host": "192.0.2.1"},
    "m2.example.org": {},
    "m3": {"ansible_host": "192.0.2.3"},
    "m4": {"ansible_host": ""},
}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["192.0.2.3", "m2.example.org", "m1"], ["m3", "m2.example.org", "m1"]),
        (["m1", "192.0.2.1"], ["m1", "m1"]),
        (["192.0.2.9", "m5"], []),
        ([], []),
    ],
)
def test_machines_are_known_by_name_and_address(wanted: list[str], found: list[str]) -> None:
    assert machine_names.FilterModule().filters()["machine_names"](wanted, MACHINES) == found


def test_machines_are_reached_by_address_or_by_name() -> None:
    found = machine_addresses.FilterModule().filters()["machine_addresses"]
    assert found(["m4", "m1", "m2.example.org"], MACHINES) == ["m4", "192.0.2.1", "m2.example.org"]
    assert found([], MACHINES) == []
