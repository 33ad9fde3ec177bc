# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that are given by name or address."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.filter.machine_names import FilterModule

MACHINES: dict[str, dict[str, Any]] = {
    "m1": {"ansible_host": "192.0.2.1"},
    "m2.example.org": {},
    "m3": {"ansible_host": "192.0.2.3"},
}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["192.0.2.3", "m2.example.org", "m1"], ["m3", "m2.example.org", "m1"]),
        (["m1", "192.0.2.1"], ["m1", "m1"]),
        (["192.0.2.9", "m4"], []),
        ([], []),
    ],
)
def test_machines_are_known_by_name_and_address(wanted: list[str], found: list[str]) -> None:
    assert FilterModule().filters()["machine_names"](wanted, MACHINES) == found
