"""The fixed list of mistakes that tests must notice, in tests/mutants.yml."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from proof.tree import Tree

from mutation.mutant import Mutant
from mutation.places import mutants

FILE = "tests/mutants.yml"


@dataclass(frozen=True)
class Entry:
    """One mistake of the list. It has no number of a line, so that edits elsewhere in the file do not matter.

    Attributes:
        path: path of the file from the root of the repository.
        mutator: name of the kind of mistake.
        was: the first line that the mistake changes, without indentation.
        becomes: what that line is afterwards; empty if it is removed.
    """

    path: str
    mutator: str
    was: str
    becomes: str = ""


def entries(tree: Tree) -> list[Entry]:
    """Return the entries of the list."""
    document = yaml.load(tree.texts[FILE], yaml.CSafeLoader)
    return [Entry(path, **one) for path, found in document.items() for one in found]


def find(wanted: list[Entry], tree: Tree) -> Iterator[Mutant | None]:
    """Return the mutant of each entry; None where the file has no such line any more."""
    known: dict[str, dict[tuple[str, str, str], Mutant]] = {}
    for entry in wanted:
        if entry.path not in known:
            found = mutants(entry.path, tree) if entry.path in tree.texts else ()
            # Of equal lines the first counts.
            known[entry.path] = {(one.mutator, one.was, one.becomes): one for one in reversed(list(found))}
        yield known[entry.path].get((entry.mutator, entry.was, entry.becomes))
