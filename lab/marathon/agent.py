#!/usr/bin/env python3
"""The tasks on an agent: every task that Marathon has there is a web server at its first port.

usage: agent.py HOST AUTHORITY URL...    (name of this agent in Marathon; certificates to trust; Marathon's)

CREDENTIALS in the environment is `user:password` at Marathon. A task that Marathon ends finishes what it has
begun and takes nothing new, as a decent server does on SIGTERM. Apps with the label `bench/app: silent`
listen to nobody. The answer is the app's id, the agent, the path and what the gateway told of the visitor.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PAUSE = 0.1  # seconds between looks at what is to run


class Handler(BaseHTTPRequestHandler):
    """One connection to a task."""

    protocol_version = "HTTP/1.1"
    told: dict[str, str]

    def do_GET(self) -> None:
        """Say who this is."""
        seen = {name: self.headers.get(name, "") for name in ("X-Forwarded-Proto", "X-Forwarded-For")}
        text = json.dumps({**self.told, "path": self.path, **seen}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        if self.server.ending:  # type: ignore[attr-defined]
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


class Task(ThreadingHTTPServer):
    """A task of an app."""

    request_queue_size = 512
    daemon_threads = True

    def __init__(self, app: str, host: str, port: int) -> None:
        self.ending = False
        handler = type("Named", (Handler,), {"told": {"app": app, "host": host}})
        super().__init__(("", port), handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *_arguments: Any) -> None:
        """Do not mind visitors who leave early."""

    def end(self) -> None:
        """Take nothing new."""
        self.ending = True
        self.shutdown()
        self.socket.close()


class Marathon:
    """Its instances, asked over one connection for as long as that lasts."""

    def __init__(self, urls: Sequence[str], authority: str, credentials: str) -> None:
        self.urls = list(urls)
        self.context = ssl.create_default_context(cafile=authority)
        self.headers = {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
        self.connection: http.client.HTTPSConnection | None = None

    def tasks(self, host: str) -> list[dict[str, Any]]:
        """Return the tasks of a host.

        :raises OSError: this instance cannot be asked; the next time it is another one
        """
        try:
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(
                    urlsplit(self.urls[0]).netloc, timeout=5, context=self.context
                )
            self.connection.request("GET", "/v2/apps?embed=apps.tasks", headers=self.headers)
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise OSError(f"status {answer.status}")
            leader = answer.headers.get("X-Marathon-Leader")
            if leader:  # this was a standby
                self.connection = None
                self.urls.sort(key=lambda url: urlsplit(url).netloc != leader)
        except (OSError, http.client.HTTPException) as error:
            self.connection = None
            self.urls = [*self.urls[1:], self.urls[0]]
            raise OSError(str(error)) from error
        return [
            {**task, "app": app["id"]}
            for app in json.loads(text)["apps"]
            for task in app["tasks"]
            if task["host"] == host and task["ports"] and app["labels"].get("bench/app") != "silent"
        ]


def main() -> int:
    """Run what Marathon says."""
    host, authority, *urls = sys.argv[1:]
    marathon = Marathon(urls, authority, os.environ["CREDENTIALS"])
    running: dict[str, Task] = {}
    while True:
        time.sleep(PAUSE)
        try:
            wanted = {task["id"]: task for task in marathon.tasks(host)}
        except OSError:
            continue  # Marathon is away; tasks do not mind
        for name in running.keys() - wanted.keys():
            running.pop(name).end()
        for name in wanted.keys() - running.keys():
            with contextlib.suppress(OSError):  # one before it still has the port
                running[name] = Task(wanted[name]["app"], host, wanted[name]["ports"][0])


if __name__ == "__main__":
    raise SystemExit(main())
