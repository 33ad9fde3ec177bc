"""Visitors of the hub under test, and what the hub's machine says."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Visitor, trust

PORT = 8888


@pytest.fixture(scope="session")
def bench() -> dict[str, Any]:
    done = subprocess.run(["lab", "status", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def passwords(bench: dict[str, Any]) -> dict[str, str]:
    users = json.loads(Path(bench["iam"]["users_file"]).read_text())
    return {name: user["password"] for name, user in users.items()}


@pytest.fixture
def facts(host: Host, bench: dict[str, Any]) -> dict[str, Any]:
    name = host.check_output("hostname")
    return next(entry for entry in bench["hosts"] if entry["name"] == name)


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds, a minute at most."""

    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, "it did not happen within a minute"
            time.sleep(0.5)

    return wait


@pytest.fixture
def hub_answers(host: Host) -> Callable[[], bool]:
    return lambda: host.run("curl --fail --silent http://127.0.0.1:8081/hub/api/").rc == 0


@pytest.fixture
def visit(
    host: Host,
    bench: dict[str, Any],
    facts: dict[str, Any],
    passwords: dict[str, str],
    eventually: Callable[[Callable[[], bool]], None],
    hub_answers: Callable[[], bool],
) -> Iterator[Callable[[str], Visitor]]:
    """Log users in; at the end their notebooks are stopped."""
    eventually(hub_answers)  # the test before may have stopped it
    authority = host.file("/etc/jupyterhub/tls/ca.crt").content_string
    context = trust(authority, Path(bench["iam"]["ca_file"]).read_text())
    with contextlib.ExitStack() as stack:
        visitors = []

        def log_in(name: str) -> Visitor:
            visitor = stack.enter_context(Visitor(f"https://{facts['address']}:{PORT}", context))
            visitor.login(name, passwords[name])
            visitors.append(visitor)
            return visitor

        yield log_in
        eventually(hub_answers)
        for visitor in visitors:
            if visitor.running():
                visitor.stop()


@pytest.fixture
def leases(host: Host) -> Callable[[], dict[str, Any]]:
    """Read who holds which slice: user to the slice's entry."""

    def read() -> dict[str, Any]:
        file = host.file("/var/lib/jupyterhub/leases.json")
        content = json.loads(file.content_string) if file.exists else {}
        held = content.get("leases", {})
        return {owner.removesuffix("/"): entry["slices"][0] for owner, entry in held.items()}

    return read
