# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows how a run goes: a live table in a terminal, a line per step elsewhere, and events for a caller."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from gpufarm.errors import GpufarmError, Interrupted
from gpufarm.plan import Step
from gpufarm.run import Done
from gpufarm.state import now

# Steps that a table shows at once; more would not fit.
ROWS = 12


class Events:
    """Writes one line of JSON for everything that happens, readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        """Open the file; lines are added to what is there.

        Args:
            path: a file, or a pipe.
        """
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.file = os.fdopen(handle, "w", encoding="utf-8", buffering=1)

    def tell(self, event: str, **what: Any) -> None:
        """Write a line.

        Args:
            event: ``started``, ``task``, ``finished`` or ``failed`` for a step, ``ended`` for the run.
            what: more about it.
        """
        self.file.write(json.dumps({"time": now(), "event": event, **what}, ensure_ascii=False) + "\n")


class Progress:
    """A listener that prints to standard error, so that standard output stays for results."""

    def __init__(self, events: Path | None = None) -> None:
        """Look whether standard error is a terminal.

        Args:
            events: file that gets a line of JSON for every event; None for none.
        """
        self.console = Console(stderr=True, highlight=False)
        self.moving = self.console.is_terminal
        self.waiting = ""
        self.running: dict[str, tuple[Step, str, float]] = {}
        self.events = Events(events) if events else None
        self.live = Live(
            console=self.console, transient=True, get_renderable=self.table, refresh_per_second=4
        )

    def __enter__(self) -> Progress:
        """Start."""
        if self.moving:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the table goes away."""
        if self.moving:
            self.live.stop()
        result = "done" if error is None else "failed"
        if isinstance(error, Interrupted | KeyboardInterrupt):
            result = "interrupted"
        failure = error.message if isinstance(error, GpufarmError) else str(error or "")
        self._tell("ended", result=result, failure=failure)
        if self.events:
            self.events.file.close()

    def table(self) -> Table:
        """Show what runs now.

        Returns:
            A line for each step, with its machine, its task and the seconds since it began.
        """
        made = Table(box=None, pad_edge=False, show_header=False)
        if not self.running:
            made.add_row(escape(self.waiting))
        entries = list(self.running.values())
        for step, task, began in entries[:ROWS]:
            seconds = f"{time.monotonic() - began:.0f} s"
            made.add_row(escape(step.name), escape(step.host), escape(task), seconds)
        if entries[ROWS:]:
            made.add_row(f"and {len(entries) - ROWS} more")
        return made

    def wait(self, text: str) -> None:
        """Tell in a terminal what is done now.

        Args:
            text: a few words.
        """
        self.waiting = text

    def say(self, text: str) -> None:
        """Tell what a person should know.

        Args:
            text: a sentence.
        """
        self._line(text)

    def _line(self, text: str) -> None:
        self.console.print(escape(text), soft_wrap=True)

    def _tell(self, event: str, **what: Any) -> None:
        if self.events:
            self.events.tell(event, **what)

    def started(self, step: Step) -> None:
        """A step begins.

        Args:
            step: the step.
        """
        self.running[step.name] = (step, "", time.monotonic())
        if not self.moving:
            self._line(f"{step.name} on {step.host} ...")
        self._tell("started", step=step.name, host=step.host)

    def task(self, step: Step, name: str) -> None:
        """A task begins, of a step and of all that run beside it in the same play.

        Args:
            step: the step.
            name: of the task.
        """
        for key, (other, _task, began) in self.running.items():
            if other.playbook == step.playbook:
                self.running[key] = (other, name, began)
        self._tell("task", step=step.name, host=step.host, task=name)

    def finished(self, step: Step, done: Done) -> None:
        """A step is done.

        Args:
            step: the step.
            done: what it did.
        """
        self.running.pop(step.name, None)
        what = f"{len(done.tasks)} changed" if done.tasks else "nothing changed"
        self._line(f"{step.name} on {step.host}: ok, {what}, {done.seconds:.0f} s")
        seconds = round(done.seconds, 3)
        self._tell("finished", step=step.name, host=step.host, changed=done.tasks, seconds=seconds)

    def failed(self, step: Step, failure: str, done: Done) -> None:
        """A step has failed; why is told at the end.

        Args:
            step: the step.
            failure: a sentence.
            done: what it did before.
        """
        self.running.pop(step.name, None)
        self._line(f"{step.name} on {step.host}: failed")
        self._tell("failed", step=step.name, host=step.host, failure=failure, changed=done.tasks)
