#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve a folder as a web server and as proxies in front of it, on ports of the loopback interface.

usage: server.py FOLDER PORT...    (the first port is the web server's, the others are proxies')
"""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit


class Handler(SimpleHTTPRequestHandler):
    """Serves files; a request to a proxy names the server, which is always this one."""

    def do_GET(self) -> None:
        if self.path.startswith("http://"):
            self.path = urlsplit(self.path).path
        super().do_GET()

    def log_message(self, _form: str, *arguments: object) -> None:
        print(self.server.server_port, *arguments, flush=True)  # type: ignore[attr-defined]


def main(folder: str, ports: list[str]) -> None:
    servers = [
        ThreadingHTTPServer(("127.0.0.1", int(port)), partial(Handler, directory=folder)) for port in ports
    ]
    for server in servers[1:]:
        Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
