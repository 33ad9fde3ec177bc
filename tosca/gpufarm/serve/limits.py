# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the size of requests, and of their rate."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpufarm.serve.refusals import TooMany

# Users and addresses that are remembered; the one that was seen least recently is forgotten first.
MOST = 10_000


class Rate:
    """Allows each key so many requests in a minute, and so many at once."""

    def __init__(self, each_minute: int, at_once: int | None = None) -> None:
        """Begin without any request.

        Args:
            each_minute: number of requests.
            at_once: number of those of a key that has been silent; None for as many.
        """
        self._each_minute = float(each_minute)
        self._most = float(at_once or each_minute)
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def _filled(self, key: str) -> float:
        left, since = self._left.get(key, (self._most, time.monotonic()))
        return min(self._most, left + (time.monotonic() - since) * self._each_minute / 60)

    def check(self, key: str) -> None:
        """Refuse a request of a key that has none left.

        Args:
            key: a user or an address.

        Raises:
            TooMany: the key has no request left now.
        """
        with self._lock:
            self._check(key)

    def _check(self, key: str) -> None:
        if self._filled(key) < 1:
            wait = "a few seconds" if self._each_minute > 10 else "a minute"
            raise TooMany(f"there were too many requests; wait {wait}")

    def take(self, key: str) -> None:
        """Count a request.

        Args:
            key: a user or an address.

        Raises:
            TooMany: the key had no request left.
        """
        with self._lock:
            self._check(key)
            self._left[key] = (self._filled(key) - 1, time.monotonic())
            self._left.move_to_end(key)
            if len(self._left) > MOST:
                self._left.popitem(last=False)

    def give(self, key: str) -> None:
        """Take back that a request was counted.

        Args:
            key: a user or an address.
        """
        with self._lock:
            if key in self._left:
                self._left[key] = (min(self._most, self._filled(key) + 1), time.monotonic())


class Sized:
    """Refuses requests whose body is too large, and reads a body before anything else is done."""

    def __init__(self, app: ASGIApp, largest: int, refused: ASGIApp) -> None:
        """Take the application.

        Args:
            app: the application.
            largest: size in bytes.
            refused: answer to a request that is larger.
        """
        self._app = app
        self._largest = largest
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request.

        Args:
            scope: of ASGI.
            receive: of ASGI.
            send: of ASGI.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        body, more = b"", True
        too_large = len(said) > 12 or (said.isdigit() and int(said) > self._largest)
        while more and not too_large:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client is gone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            too_large = len(body) > self._largest
        if too_large:
            await self._refused(scope, receive, send)
            return
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replayed, send)
