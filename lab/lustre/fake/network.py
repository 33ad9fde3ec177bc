# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How machines reach one another: an acceptor on LNet's port that answers for the targets of its machine."""

from __future__ import annotations

import fnmatch
import json
import re
import socket
import socketserver
import sys
from pathlib import Path
from typing import Any

from . import state

NID = re.compile(r"([0-9]+(?:\.[0-9]+){3})@((?:tcp|o2ib|efa|kfi|gni)[0-9]*)")


def canonical(net: str) -> str:
    """tcp0 is tcp (libcfs_net2str)."""
    return re.sub(r"^([a-z0-9]*[a-z])0$", r"\1", net)


def ask(nid: str, question: dict[str, Any], seconds: float = 3) -> dict[str, Any] | None:
    """Ask the machine of a NID; None when it does not answer, or is in no network of this machine."""
    found = NID.fullmatch(nid)
    if not found or canonical(found[2]) not in reachable():
        return None
    try:
        with socket.create_connection((found[1], state.PORT), seconds) as connection:
            connection.sendall(json.dumps(question).encode() + b"\n")
            answer: dict[str, Any] = json.loads(connection.makefile().readline())
    except (OSError, ValueError):
        return None
    return answer


def reachable() -> set[str]:
    with state.kernel() as known:
        return set(known["nets"]) | {route["net"] for route in known["routes"]}


def own_nids() -> list[str]:
    with state.kernel() as known:
        return [one["nid"] for interfaces in known["nets"].values() for one in interfaces.values()]


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    allow_reuse_port = True  # one that listens on an address of its own goes before the kernel's
    daemon_threads = True
    file_systems: tuple[str, ...] = ()  # served without targets of their own


class Answer(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        line = self.rfile.readline()
        if line:
            self.wfile.write(json.dumps(self.answer(json.loads(line))).encode() + b"\n")

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if "ping" in question:
            return {"nids": [question["ping"]] if self.server.file_systems else own_nids()}
        if "register" in question:
            return register(question["register"])
        if "parameter" in question:
            return {"value": kept(question["parameter"])} if manages() else {"problem": state.ENODEV}
        name = question["file_system"]
        if self.server.file_systems:
            served = [f"{name}-MDT0000", f"{name}-OST0000", f"{name}-OST0001"]
            return {"targets": served if name in self.server.file_systems else []}
        if not manages():
            return {"problem": state.ENODEV}
        return {"targets": [one for one in registry() if one.startswith(f"{name}-")]}


def manages() -> bool:
    """Whether the management target is mounted here."""
    return any("MGS" in one["types"] for one in state.targets().values())


def registry_file() -> Path:
    return state.VAR / "mgs.json"


def registry() -> dict[str, Any]:
    """Return what the management target knows: targets, by their names, with their UUIDs."""
    file = registry_file()
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return known


def parameters_file() -> Path:
    return state.VAR / "mgs-parameters.json"


def parameters() -> dict[str, str]:
    """Return what `lctl set_param -P` has set, the latest last."""
    return dict(json.loads(parameters_file().read_text())) if parameters_file().exists() else {}


def kept(name: str) -> str | None:
    """Return what the management target has for a parameter."""
    found = [value for pattern, value in parameters().items() if fnmatch.fnmatchcase(name, pattern)]
    return found[-1] if found else None


def register(target: dict[str, str]) -> dict[str, Any]:
    if not manages():
        return {"problem": state.ENODEV}
    known = registry()
    if known.get(target["name"], target["uuid"]) != target["uuid"]:
        return {"problem": 98}  # EADDRINUSE: the index is in use
    known[target["name"]] = target["uuid"]
    state.VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
    registry_file().write_text(json.dumps(known))
    return {"ok": True}


def serve(address: str, *file_systems: str) -> None:
    """Answer on an address; without file systems for what is mounted on this machine."""
    with Server((address, state.PORT), Answer) as server:
        server.file_systems = file_systems
        print(f"answering on {address}", file=sys.stderr)
        server.serve_forever()


def start() -> None:
    """Start the acceptor of this machine, unless it runs."""
    unit = "lustre-fake-acceptor"
    if state.run("systemctl", "is-active", "--quiet", unit).returncode != 0:
        state.run("systemctl", "reset-failed", unit)
        state.run("systemd-run", f"--unit={unit}", "/usr/sbin/lustre-fake", "serve", "")
