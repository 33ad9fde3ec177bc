"""The list of mistakes that tests must notice names lines that are there, and is long enough."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from mutation.listed import FILE, entries, find
from proof.tree import working_tree

ROOT = Path(__file__).resolve().parents[2]


def test_every_mistake_of_the_list_can_be_made() -> None:
    tree = working_tree(ROOT)
    listed = entries(tree)
    gone = [entry for entry, found in zip(listed, find(listed, tree), strict=True) if found is None]
    assert not gone, f"{FILE} has lines that are no longer there; replace these by such that do the same"
    assert len(set(listed)) == len(listed) >= 100
    assert sum(entry.path.endswith(".py") for entry in listed) in range(50, 80)
