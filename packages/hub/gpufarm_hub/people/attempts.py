# SPDX-License-Identifier: GPL-3.0-or-later
"""Attempts to log in with a password: how many at once and one after the other, and from where."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from tornado.web import HTTPError

from . import throttle
from .throttle import Key, Throttle

HEADER = "X-Gpufarm-Client"  # proxy/client.mjs
COOKIE = "gpufarm-browser-"  # and the user's name
REMEMBERED = 180  # days for which a browser is known

# At once from one client: the delay after wrong passwords must not occupy all threads.
AT_ONCE = 2
LONGEST = 200  # attempts of one client that wait; a course that begins has one address


@dataclass
class Line:
    """Attempts of one client: its turns, and how many attempts there are."""

    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    length: int = 0


class Attempts:
    """Lets through what may be tried now."""

    def __init__(self, counts: Throttle | None = None) -> None:
        self._counts = counts or Throttle()
        self._lines: WeakValueDictionary[Key, Line] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def one(self, handler: Any, name: str) -> AsyncIterator[Attempt]:
        """Make way for an attempt; one that ends with an error was no wrong password.

        It counts when its turn comes, not while it waits for others of whom nobody knows how they end.

        Raises:
            tornado.web.HTTPError: it must wait; the page says how long.
        """
        keys = _keys(handler, name)
        line = self._lines.setdefault(keys[0], Line())
        if line.length >= LONGEST:
            raise _too_many(throttle.CROWD)
        line.length += 1
        try:
            async with line.turn, self._counted(keys) as attempt:
                yield attempt
        finally:
            line.length -= 1
        if not attempt.wrong:
            _know(handler, name)

    @contextlib.asynccontextmanager
    async def _counted(self, keys: list[Key]) -> AsyncIterator[Attempt]:
        wait = self._counts.take(keys)
        if wait:
            raise _too_many(throttle.refusal(wait))
        attempt = Attempt()
        try:
            yield attempt
        except Exception:
            self._counts.give_back(keys)
            raise
        if not attempt.wrong:
            self._counts.give_back(keys)


class Attempt:
    """How an attempt ended.

    Attributes:
        wrong: whether the password was wrong.
    """

    wrong = False


def _too_many(sentence: str) -> HTTPError:
    return HTTPError(429, sentence, reason="Too Many Requests")


def _keys(handler: Any, name: str) -> list[Key]:
    browser = handler.get_signed_cookie(COOKIE + name, max_age_days=REMEMBERED)
    if browser:
        return [("browser", f"{name} {browser.decode()}")]
    secret = os.environ.get("CONFIGPROXY_AUTH_TOKEN", "")
    return [
        ("address", throttle.network(handler.request.headers.get(HEADER), secret)),
        ("name", name),
    ]


def _know(handler: Any, name: str) -> None:
    """Remember that a user has logged in with this browser."""
    if not handler.get_signed_cookie(COOKIE + name, max_age_days=REMEMBERED):
        handler.set_signed_cookie(
            COOKIE + name,
            secrets.token_hex(16),
            expires_days=REMEMBERED,
            path=f"{handler.hub.base_url}login",
            httponly=True,
            samesite="Strict",
            secure=handler.request.protocol == "https",
        )
