"""A web socket for programs that do one thing after the other."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect


class Channels:
    """A web socket that is open as long as the `with` statement runs.

    The client of websockets.sync reads in one thread and writes in another. Two threads must not use one TLS
    connection at once (openssl-threads(7)): of a thousand first requests one never left the machine, and the
    proxy answered 408 a minute later. Here one thread does all.

    Args:
        url: where to, beginning with wss://.
        context: whose certificates are trusted.
        headers: HTTP headers of the request.
        open_timeout: seconds that the server may take to answer.

    Raises:
        websockets.exceptions.InvalidStatus: the server does not want to.
        TimeoutError: it did not answer in time.
    """

    def __init__(
        self, url: str, context: ssl.SSLContext, headers: Mapping[str, str], open_timeout: float
    ) -> None:
        async def open_() -> ClientConnection:
            return await connect(
                url,
                ssl=context,
                proxy=None,
                max_size=None,
                ping_interval=None,  # nobody would read the answers between two calls
                open_timeout=open_timeout,
                additional_headers=headers,
            )

        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(open_())
        except BaseException:
            self._runner.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._runner:
            self._runner.run(self._connection.close())

    def send(self, message: str) -> None:
        """Send a message. Raises websockets.exceptions.ConnectionClosed when the server has gone."""
        self._runner.run(self._connection.send(message))

    def recv(self, timeout: float) -> Any:
        """Return the next message.

        Args:
            timeout: seconds to wait for it.

        Raises:
            TimeoutError: there was none.
            websockets.exceptions.ConnectionClosed: the server has gone.
        """

        async def receive() -> Any:
            return await asyncio.wait_for(self._connection.recv(), timeout)

        return self._runner.run(receive())
