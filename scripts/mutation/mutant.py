"""A mutant: one file with one small mistake."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Edit:
    """A piece of a text and what replaces it.

    Attributes:
        mutator: name of the kind of mistake.
        start: index of the first character that is replaced.
        end: index after the last one.
        text: the replacement.
    """

    mutator: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutant:
    """A file with one mistake.

    Attributes:
        path: path of the file from the root of the repository.
        mutator: name of the kind of mistake.
        was: the first line that the mistake changes, without indentation.
        becomes: what that line is afterwards; empty if it is removed.
        line: number of that line, from 1.
        last: number of the last line that the mistake changes.
        text: the whole file with the mistake.
    """

    path: str
    mutator: str
    was: str
    becomes: str
    line: int = field(compare=False)
    last: int = field(compare=False)
    text: str = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.mutator}: {self.was!r} becomes {self.becomes!r}"


def mutant(path: str, text: str, edit: Edit) -> Mutant:
    """Return the mutant that an edit makes of a file."""
    line_start = text.rfind("\n", 0, edit.start) + 1
    changed = text[: edit.start] + edit.text + text[edit.end :]
    removed = not edit.text and text[line_start : edit.start].strip() == "" and text[edit.end - 1] == "\n"
    number = text.count("\n", 0, edit.start) + 1
    return Mutant(
        path,
        edit.mutator,
        text[line_start:].partition("\n")[0].strip(),
        "" if removed else changed[line_start:].partition("\n")[0].strip(),
        number,
        number + text.count("\n", edit.start, max(edit.start, edit.end - 1)),
        changed,
    )
