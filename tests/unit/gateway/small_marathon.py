"""As little of a Marathon as the gateway needs: apps with tasks, events, a leader elsewhere.

Behaviour after Marathon's documentation, "Event Bus" (a stream of server-sent events, 405 for clients that do
not accept it) and its REST API (GET /v2/apps?embed=apps.tasks, basic authentication).
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

END = object()


class SmallMarathon(ThreadingHTTPServer):
    """A server on a port of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.apps: Any = []
        self.account = ""
        self.leader = ""  # URL of another one, to which everything is led
        self.status = 200
        self.seen: list[tuple[str, str]] = []  # path and Authorization
        self.listeners: list[queue.Queue[Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def tell(self, name: str, data: str = "{}") -> None:
        for listener in list(self.listeners):
            listener.put(f"event: {name}\r\ndata: {data}\r\n\r\n")

    def hang_up(self) -> None:
        for listener in list(self.listeners):
            listener.put(END)

    def stop(self) -> None:
        self.hang_up()
        self.shutdown()
        self.server_close()


@contextmanager
def running() -> Iterator[SmallMarathon]:
    """A server that answers until the block ends."""
    server = SmallMarathon()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.stop()
    thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: SmallMarathon

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization", "")))
        expected = "Basic " + base64.b64encode(self.server.account.encode()).decode()
        if self.server.leader:
            self._answer(302, "", {"Location": self.server.leader + self.path})
        elif self.server.status != 200:
            self._answer(self.server.status, "")
        elif self.server.account and self.headers.get("Authorization") != expected:
            self._answer(401, "", {"WWW-Authenticate": 'Basic realm="Mesosphere"'})
        elif self.path == "/v2/apps?embed=apps.tasks":
            self._answer(200, json.dumps({"apps": self.server.apps}), {"Content-Type": "application/json"})
        elif self.path == "/v2/events":
            self._events()
        else:
            self._answer(404, "")

    def _answer(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def _events(self) -> None:
        if self.headers.get("Accept") != "text/event-stream":
            self._answer(405, "")
            return
        listener: queue.Queue[Any] = queue.Queue()
        self.server.listeners.append(listener)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream;charset=UTF-8")
        self.end_headers()
        self.wfile.flush()
        while (word := listener.get()) is not END:
            self.wfile.write(word.encode())
            self.wfile.flush()
        self.server.listeners.remove(listener)
