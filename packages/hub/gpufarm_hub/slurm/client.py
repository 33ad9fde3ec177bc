# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to Slurm by its own programs, which know where the controller is and prove who asks."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

from gpufarm_hub import clock
from gpufarm_hub.spawning.engine import EngineError

TIMEOUT = 60  # seconds; Slurm's programs look for another controller meanwhile

Answer = TypeVar("Answer")

# While a controller hangs, all who ask wait for it; the rest of the hub needs threads all the same.
_THREADS = ThreadPoolExecutor(16, thread_name_prefix="slurm")


async def in_thread(ask: Callable[..., Answer], *arguments: Any) -> Answer:
    """Return what a function returns that asks Slurm, without keeping the hub from its other work."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(ask, *arguments))


class RefusedError(EngineError):
    """Slurm has answered, and refuses; the text is its own."""


def run(command: Sequence[str], stdin: str = "", within: float = TIMEOUT) -> str:
    """Run a program of Slurm and return what it prints.

    Users write parts of that, such as comments of jobs; bytes that are no UTF-8 are replaced.

    Args:
        command: the program with its arguments.
        stdin: what it reads.
        within: seconds that it may take.

    Raises:
        RefusedError: it has ended with an error.
        EngineError: it does not answer, or is not there.
    """
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=within,
            input=stdin,
            cwd="/",
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise RefusedError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


class Shared(Generic[Answer]):
    """An answer that all who ask within some seconds share: one question to Slurm for all notebooks.

    So is a failure: each of them would have to wait for a controller that is away otherwise.

    Args:
        ask: returns the answer.
        seconds: for which it serves.
    """

    def __init__(self, ask: Callable[[], Answer], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._lock = threading.Lock()
        self._until = 0.0
        self._answer: Answer | None = None
        self._error: EngineError | None = None

    def get(self) -> Answer:
        """Return the answer.

        Raises:
            EngineError: Slurm does not answer.
        """
        with self._lock:
            if clock.steady() >= self._until:
                self._answer = self._error = None
                try:
                    self._answer = self._ask()
                except EngineError as error:
                    self._error = error
                self._until = clock.steady() + self._seconds
            if self._error:
                raise type(self._error)(str(self._error)) from self._error
            return self._answer  # type: ignore[return-value]

    def forget(self) -> None:
        """Have the next answer be a new one, as something was changed."""
        with self._lock:
            self._until = 0.0
