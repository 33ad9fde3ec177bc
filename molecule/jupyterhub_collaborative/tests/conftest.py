"""Visitors of the hub under test, and the leases on its machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Visitor, trust


@pytest.fixture(scope="session")
def bench() -> dict[str, Any]:
    done = subprocess.run(["lab", "status", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def visit(host: Host, bench: dict[str, Any]) -> Iterator[Callable[[str], Visitor]]:
    """Log users in; they use the collaborative JupyterLab."""
    authority = host.file("/etc/jupyterhub/tls/ca.crt").content_string
    context = trust(authority, Path(bench["iam"]["ca_file"]).read_text())
    passwords = json.loads(Path(bench["iam"]["users_file"]).read_text())
    hub = next(entry for entry in bench["hosts"] if entry["name"] == "hub14")
    with contextlib.ExitStack() as stack:

        def log_in(name: str) -> Visitor:
            visitor = stack.enter_context(Visitor(f"https://{hub['address']}:8888", context))
            visitor.login(name, passwords[name]["password"])
            visitor.use_server_of("collaborative")
            return visitor

        yield log_in


@pytest.fixture
def leases(host: Host) -> Callable[[], dict[str, str]]:
    """Read who holds which slice: owner to UUID."""

    def read() -> dict[str, str]:
        file = host.file("/var/lib/jupyterhub/leases.json")
        content = json.loads(file.content_string) if file.exists else {}
        return {owner: entry["slices"][0]["uuid"] for owner, entry in content.get("leases", {}).items()}

    return read
