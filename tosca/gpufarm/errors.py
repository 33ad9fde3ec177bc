# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that can go wrong, as one sentence and an exit status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Any

import click

# A sentence quotes what was given, which may be of any length; both its ends say what is wrong.
_LONGEST = 1000


def shortened(text: str) -> str:
    """Cut the middle out of lines that nobody can read.

    Args:
        text: some sentences, one on each line.

    Returns:
        The text with lines of at most some 1000 letters.
    """
    half = _LONGEST // 2
    lines = text.split("\n")
    return "\n".join(
        f"{line[:half]} ... {line[-half:]}" if len(line) > _LONGEST + 5 else line for line in lines
    )


class GpufarmError(click.ClickException, Exception):  # pylint knows it for an exception without click, too
    """Something went wrong; the message is one sentence: the thing, the reason and the next step."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        """Take the sentence.

        Args:
            message: what went wrong; the middle of a very long line is left out.
        """
        super().__init__(shortened(message))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence.

        Args:
            file: where to; None for standard error.
        """
        click.echo(f"gpufarm: {self.message}", file=file, err=file is None)


class BadInput(GpufarmError):
    """The template, an input, the pool or the command line is wrong; nothing was touched."""

    exit_code = 2


class NoEntry(BadInput):
    """An expression names an entry that a list or a map does not have."""


class BadTemplate(BadInput):
    """The template is wrong, in one place or in several; nothing was touched.

    Attributes:
        problems: all of them (`gpufarm.problems.Problem`), in the order of the files.
    """

    def __init__(self, problems: Iterable[Any]) -> None:
        """Take the complaints.

        Args:
            problems: at least one.
        """
        cut = (replace(problem, text=shortened(problem.text)) for problem in problems)
        self.problems = sorted(set(cut))
        lines = [str(problem) for problem in self.problems]
        if len(lines) > 1:
            lines.append(f"{len(lines)} problems; nothing was touched")
        super().__init__("\n".join(lines))


class NoMachine(GpufarmError):
    """No free machine of the pool has what the template asks for; nothing was touched."""

    exit_code = 3


class Locked(GpufarmError):
    """Another run is changing the deployment; nothing was touched."""

    exit_code = 4


class Drift(GpufarmError):
    """The machines differ from what was deployed; nothing was touched."""

    exit_code = 5


class Interrupted(GpufarmError):
    """The run was stopped by a signal; the next one continues."""

    exit_code = 130
