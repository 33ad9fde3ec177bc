#!/usr/bin/env python3
"""The answers of a master to what the module `mesos_info` asks: one agent with two GPUs of which one is free,
and a user, ada, with a quota.

usage: one_agent.py PORT    (at 127.0.0.1)

Sources: apache/mesos 1.11.0, docs/operator-http-api.md, docs/endpoints/master/roles.md.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def scalars(**amounts: float) -> list[dict[str, Any]]:
    """Return resources as Mesos writes them."""
    return [{"name": name, "type": "SCALAR", "scalar": {"value": value}} for name, value in amounts.items()]


ANSWERS: dict[str, dict[str, Any]] = {
    "GET_VERSION": {"version_info": {"version": "1.11.0"}},
    "GET_AGENTS": {
        "agents": [
            {
                "agent_info": {"id": {"value": "S0"}, "hostname": "gpu1", "port": 5051},
                "active": True,
                "total_resources": scalars(cpus=8, mem=16384, disk=100000, gpus=2),
                "allocated_resources": scalars(cpus=1, gpus=1),
            }
        ]
    },
    "GET_QUOTA": {
        "status": {"configs": [{"role": "ada", "limits": {"gpus": {"value": 1}, "cpus": {"value": 4}}}]}
    },
    "GET_WEIGHTS": {},
}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        """Answer a call."""
        kind = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["type"]
        self._say({"type": kind, kind.lower(): ANSWERS[kind]})

    def do_GET(self) -> None:
        """Tell what roles have."""
        self._say({"roles": [{"name": "ada", "quota": {"consumed": {}}}]})

    def _say(self, document: Any) -> None:
        text = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def server(port: int) -> ThreadingHTTPServer:
    """Listen at a port, 0 for any that is free."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    server(int(sys.argv[1])).serve_forever()
