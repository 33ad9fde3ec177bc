# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of an attempt, as its worker sees it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

# Seconds that a stopped attempt has to end by itself: Ansible ends its present tasks.
GRACE = 60.0


class Child:
    """A process in a session of its own, which is stopped by the end of its input."""

    def __init__(self, program: Sequence[str], order: Mapping[str, Any]) -> None:
        """Start it.

        Args:
            program: the command.
            order: its first line of input.
        """
        self._process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._log: list[str] = []
        self._deadline: float | None = None
        self.ending: dict[str, Any] | None = None
        threading.Thread(target=self._read, daemon=True).start()
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it has ended at once, which `wait` tells
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait(self, seconds: float) -> bool:
        """Take what it tells.

        Args:
            seconds: how long to wait.

        Returns:
            Whether it has ended.
        """
        until = time.monotonic() + seconds
        while True:
            if self._deadline is not None and time.monotonic() > self._deadline:
                self.kill()
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return False
            if line is None:
                self._process.wait()
                return True
            with contextlib.suppress(ValueError, RecursionError):  # half a line of a process that was killed
                told = _stored(json.loads(line))
                if isinstance(told, dict):
                    self._log.append(str(told.get("log", "")))
                    self.ending = told.get("ending", self.ending)

    def log(self) -> str:
        """Give the progress since the last call.

        Returns:
            The lines.
        """
        found, self._log = "".join(self._log), []
        return found

    def stop(self) -> None:
        """Ask it to stop; some time later it is killed."""
        if self._deadline is None:
            self._deadline = time.monotonic() + GRACE
            assert self._process.stdin
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def kill(self) -> None:
        """End it now, with all that it has started in its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def death(self) -> str:
        """Say how it ended without an answer.

        Returns:
            A phrase.
        """
        status = self._process.returncode
        return f"signal {-status}" if status < 0 else f"exit status {status}"


def answered(
    program: Sequence[str], order: Mapping[str, Any], stop: threading.Event, longest: float
) -> dict[str, Any]:
    """Have an order carried out that only reads.

    Args:
        program: the command.
        order: its first line of input.
        stop: ends it early.
        longest: seconds that it may take.

    Returns:
        How it ended: ``well``, and the answer, or ``reason``, a sentence.
    """
    child, until, late = Child(program, order), time.monotonic() + longest, False
    while not child.wait(1.0):
        late = time.monotonic() > until
        if stop.is_set() or late:
            child.stop()
    if child.ending and not (late and not child.ending["well"]):
        return child.ending
    why = f"took longer than {longest:.0f} seconds" if late else f"gave no answer ({child.death()})"
    return {"well": False, "reason": f"the reading {why}"}


def _stored(value: Any) -> Any:
    """A value as each database and each client takes it: texts in UTF-8 without NUL, and finite numbers."""
    if isinstance(value, str):
        return value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_stored(item) for item in value]
    if isinstance(value, dict):
        return {_stored(key): _stored(item) for key, item in value.items()}
    return value
