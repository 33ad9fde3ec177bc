# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines as an orchestrator knows them, by their addresses, and as the inventory does. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def names(wanted: Sequence[str], machines: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names in the inventory of machines that are given by name or address.

    Args:
        wanted: as a site or an orchestrator gives them; those that the inventory does not have are left out.
        machines: variables by name in the inventory, such as `hostvars`.
    """
    unnamed = [one for one in wanted if one not in machines]
    by_address = {machines[name].get("ansible_host"): name for name in machines} if unnamed else {}
    found = [one if one in machines else by_address.get(one) for one in wanted]
    return [name for name in found if name]


def addresses(named: Sequence[str], machines: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the addresses at which others reach machines; their names where the inventory gives none.

    Args:
        named: names in the inventory, or what it does not know, such as addresses, which stays as it is.
        machines: variables by name in the inventory, such as `hostvars`.
    """
    return [(name in machines and machines[name].get("ansible_host")) or name for name in named]
