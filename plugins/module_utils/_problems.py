# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of settings and hosts, as one table for all hosts. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

COLUMNS = ("HOST", "ROLE", "PROBLEM")
# Ansible puts this before the message of a lookup or filter that fails.
_WRAPPING = re.compile(
    r"Task failed: |Finalization of task args for '[^']*' failed: |Error while resolving value for '[^']*': "
    r"|The (lookup|filter) plugin '[^']*' failed: "
)


def rows(found: Mapping[str, Iterable[Mapping[str, str]]]) -> list[tuple[str, str, str]]:
    """Return host, role and problem, one row for each line of a message.

    Args:
        found: the problems of each host, each with `role` and `message`.
    """
    return [
        (host, one["role"], " ".join(_WRAPPING.sub("", line).split()))
        for host, problems in found.items()
        for one in problems
        for line in one["message"].splitlines()
        if line.strip()
    ]


def table(found: Mapping[str, Iterable[Mapping[str, str]]]) -> str:
    """Return the table, below a line with the number of problems; empty if there is none."""
    cells = rows(found)
    if not cells:
        return ""
    lines = [COLUMNS, *cells]
    hosts, roles = (max(len(line[column]) for line in lines) for column in (0, 1))
    return "\n".join(
        [
            f"{len(cells)} problem{'s' if cells[1:] else ''}; nothing was changed:",
            *(f"{host:{hosts}}  {role:{roles}}  {problem}" for host, role, problem in lines),
        ]
    )
