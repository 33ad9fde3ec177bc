# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of several machines as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._table import lines as aligned

HEAD = ("machine", "role", "owner", "applied", "state")


def rows(machines: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[str, ...]]:
    """Return a row for each owner of each role on each machine, and one for each difference.

    Args:
        machines: what the module machine_record_info returned, by the name of the machine.
    """
    found: list[tuple[str, ...]] = []
    for machine, records in sorted(machines.items()):
        for record in records:
            first, *more = record["state"]
            applied = str(record["at"])[:16].replace("T", " ")
            owner = f"{record['owner']}{'' if record['owns'] else ' (verifies)'}"
            found.append((machine, record["role"], owner, applied, first))
            found += [("", "", "", "", one) for one in more]
        if not records:
            found.append((machine, "-", "-", "-", "no record"))
    return found


def lines(table: Iterable[Sequence[str]]) -> list[str]:
    """Return the rows as lines of a table."""
    return aligned(HEAD, table)
