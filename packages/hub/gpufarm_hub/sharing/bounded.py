# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions that may never be answered: a driver that hangs lets no thread go that waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class _Question(threading.Thread, Generic[Answer]):
    """One question, asked in a thread that nobody has to wait for."""

    def __init__(self, question: Callable[[], Answer]) -> None:
        super().__init__(daemon=True)
        self._question = question
        self.answer: Answer
        self.error: Exception | None = None

    def run(self) -> None:
        """Ask, and keep the answer."""
        try:
            self.answer = self._question()
        except Exception as error:  # raised again by `ask`
            self.error = error


# Questions that were given up, by name.
_given_up: dict[Hashable, threading.Thread] = {}


def ask(name: Hashable, question: Callable[[], Answer], seconds: float) -> Answer:
    """Return the answer to a question. A question that timed out is not asked again while it is open.

    Args:
        name: of what is asked.
        question: what asks.
        seconds: that it may take.

    Raises:
        TimeoutError: it takes longer, or is still open since it was asked before.
        Exception: what the question raises.
    """
    before = _given_up.get(name)
    if before and before.is_alive():
        raise TimeoutError
    asked = _Question(question)
    asked.start()
    asked.join(seconds)
    if asked.is_alive():
        _given_up[name] = asked
        raise TimeoutError
    if asked.error:
        raise asked.error
    return asked.answer
