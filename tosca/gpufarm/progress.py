# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows how a run goes: a moving line in a terminal, a line per step elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from gpufarm.plan import Step
from gpufarm.run import Done


class Progress:
    """A listener that prints to standard error, so that standard output stays for results."""

    def __init__(self) -> None:
        """Look whether standard error is a terminal."""
        self.console = Console(stderr=True, highlight=False)
        self.moving: Status | None = self.console.status("") if self.console.is_terminal else None

    def __enter__(self) -> Progress:
        """Start."""
        if self.moving:
            self.moving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the moving line goes away."""
        if self.moving:
            self.moving.stop()

    def wait(self, text: str) -> None:
        """Tell in a terminal what is done now.

        Args:
            text: a few words.
        """
        if self.moving:
            self.moving.update(escape(text))

    def _line(self, text: str) -> None:
        self.console.print(escape(text), soft_wrap=True)

    def started(self, step: Step) -> None:
        """A step begins.

        Args:
            step: the step.
        """
        if self.moving:
            self.wait(f"{step.name} on {step.host}")
        else:
            self._line(f"{step.name} on {step.host} ...")

    def task(self, step: Step, name: str) -> None:
        """A task of a step begins.

        Args:
            step: the step.
            name: of the task.
        """
        self.wait(f"{step.name} on {step.host}: {name}")

    def finished(self, step: Step, done: Done) -> None:
        """A step is done.

        Args:
            step: the step.
            done: what it did.
        """
        what = f"{len(done.tasks)} changed" if done.tasks else "nothing changed"
        self._line(f"{step.name} on {step.host}: ok, {what}, {done.seconds:.0f} s")

    def failed(self, step: Step, _failure: str) -> None:
        """A step has failed; why is told at the end.

        Args:
            step: the step.
            _failure: a sentence.
        """
        self._line(f"{step.name} on {step.host}: failed")
