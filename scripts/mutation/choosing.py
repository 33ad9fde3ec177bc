"""Which mutants are tried: those of changed lines, and a sample that is always the same."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from proof import landed
from proof.tree import Tree, git

from mutation.mutant import Mutant
from mutation.places import mutants

HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def all_of(tree: Tree) -> Iterator[Mutant]:
    """Return all mutants of all files."""
    for path in sorted(tree.texts):
        yield from mutants(path, tree)


def changed(root: Path, commit: str, tree: Tree) -> Iterator[Mutant]:
    """Return the mutants of the lines that differ from a commit; of a new file all.

    Args:
        root: the repository.
        commit: what it is compared with.
        tree: its files.
    """
    for path in sorted(landed.changed(root, commit) & tree.texts.keys()):
        lines = _changed_lines(root, commit, path)
        for mutant in mutants(path, tree):
            if not lines or lines & set(range(mutant.line, mutant.last + 1)):
                yield mutant


def _changed_lines(root: Path, commit: str, path: str) -> set[int]:
    """The numbers of the lines that differ; none for a file that git does not know yet."""
    diff = git(root, "diff", "--unified=0", "--no-renames", commit, "--", path).decode(errors="replace")
    found: set[int] = set()
    for start, count in HUNK.findall(diff):
        found |= set(range(int(start), int(start) + int(count or 1)))
    return found


def shuffled(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Sort mutants by chance, always in the same way: first one of each file, then another of each."""
    by_file: dict[str, int] = {}
    ranked = []
    for mutant in sorted(mutants, key=_digest):
        by_file[mutant.path] = by_file.get(mutant.path, 0) + 1
        ranked.append((by_file[mutant.path], _digest(mutant), mutant))
    return [mutant for *_, mutant in sorted(ranked, key=lambda one: one[:2])]


def _digest(mutant: Mutant) -> bytes:
    words = "\0".join((mutant.path, mutant.mutator, mutant.was, mutant.becomes))
    return hashlib.sha256(words.encode()).digest()
