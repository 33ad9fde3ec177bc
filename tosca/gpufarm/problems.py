# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a template, each with its place, so that all are reported at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpufarm.errors import BadTemplate


@dataclass(frozen=True, order=True)
class Place:
    """A place in a file.

    Attributes:
        file: path of the file.
        line: counted from 1; 0 for the file as a whole.
        column: counted from 1; 0 for the file as a whole.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class Problem:
    """A complaint.

    Attributes:
        place: where.
        text: what is wrong and what to do, without a full stop.
    """

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class Report:
    """Collects complaints."""

    def __init__(self) -> None:
        """Begin with none."""
        self.problems: list[Problem] = []

    def add(self, place: Place, text: str) -> None:
        """Complain.

        Args:
            place: where.
            text: what is wrong and what to do, without a full stop.
        """
        self.problems.append(Problem(place, " ".join(text.split())))

    def conclude(self) -> None:
        """End the examination.

        Raises:
            BadTemplate: there was a complaint.
        """
        if self.problems:
            raise BadTemplate(self.problems)


def near(name: Any, known: Iterable[str]) -> str:
    """Suggest what may have been meant.

    Args:
        name: what was written.
        known: what could have been written.

    Returns:
        A phrase to put behind a semicolon.
    """
    names = sorted(filter(None, map(str, known)))
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}" if names else "none is known"
