#!/usr/bin/env python3
"""The answers of a master to what the modules `mesos_info` and `mesos_console` ask.

There are one agent with two GPUs of which one is free, and a user, ada, with a quota.

usage: one_agent.py PORT [TOLD]    (at 127.0.0.1)

TOLD is a file, read for each request, with `tasks`, as GET_TASKS tells them, of the agent S1, which is this
process; `frameworks`, ids of those that are registered; and `files`, texts by their paths at the agent.

Sources: apache/mesos 1.11.0, docs/operator-http-api.md, docs/endpoints/master/roles.md; answers to
READ_FILE as seen on a real one, tests/integration/mesos.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import copy
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast


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

    told: Path | None = None

    def do_POST(self) -> None:
        """Answer a call."""
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = call["type"]
        told = json.loads(self.told.read_text()) if self.told else {}
        answer = self._of_tasks(call, told) if self.told else None
        if kind == "READ_FILE" and answer is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._say({"type": kind, kind.lower(): ANSWERS[kind] if answer is None else answer})

    def _of_tasks(self, call: dict[str, Any], told: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer of the file to a call; None if it has none."""
        if call["type"] == "GET_TASKS":
            return {"tasks": told["tasks"]}
        if call["type"] == "GET_FRAMEWORKS":
            return {"frameworks": [{"framework_info": {"id": {"value": own}}} for own in told["frameworks"]]}
        if call["type"] == "GET_AGENTS":
            found = copy.deepcopy(ANSWERS["GET_AGENTS"])
            host, port = "127.0.0.1", cast(HTTPServer, self.server).server_port
            info = {"id": {"value": "S1"}, "hostname": host, "port": port}
            found["agents"].append({"agent_info": info, "active": False, "pid": f"slave(1)@{host}:{port}"})
            return found
        if call["type"] == "READ_FILE" and call["read_file"]["path"] in told["files"]:
            asked = call["read_file"]
            data = told["files"][asked["path"]].encode()
            part = data[asked["offset"] : asked["offset"] + asked["length"]]
            return {"size": len(data), "data": base64.b64encode(part).decode()}
        return None

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


def server(port: int, told: Path | None = None) -> ThreadingHTTPServer:
    """Listen at a port, 0 for any that is free."""
    return ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (Handler,), {"told": told}))


if __name__ == "__main__":
    server(int(sys.argv[1]), *map(Path, sys.argv[2:])).serve_forever()
