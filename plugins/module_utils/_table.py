# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables for people, as plain text. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table as lines, each column as wide as its longest cell; the last one is as long as it is.

    Args:
        head: titles of the columns.
        rows: cells, as many in each row as there are titles.
    """
    every = [head, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(head) - 1)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[-1]]) for row in every]
