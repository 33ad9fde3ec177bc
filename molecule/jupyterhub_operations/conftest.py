"""The hub by its name, which only its machine and this process know."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Visitor, trust

NAME = "hub.example.test"


@pytest.fixture(scope="session")
def address(bench: dict[str, Any]) -> str:
    return next(entry["address"] for entry in bench["hosts"] if entry["name"] == "ops12")


@pytest.fixture(autouse=True)
def resolve(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lead the hub's name to its machine."""
    ask = socket.getaddrinfo

    def answer(host: Any, *arguments: Any, **options: Any) -> Any:
        return ask(address if host in (NAME, NAME.encode()) else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.fixture
def authority(host: Host) -> str:
    """Return the root of Pebble's certificates."""
    return host.check_output("curl --silent --cacert /root/pebble.pem https://localhost:15000/roots/0")


@pytest.fixture
def context(authority: str, bench: dict[str, Any]) -> ssl.SSLContext:
    return trust(authority, Path(bench["iam"]["ca_file"]).read_text())


@pytest.fixture
def visit(context: ssl.SSLContext, passwords: dict[str, str]) -> Iterator[Callable[[str], Visitor]]:
    """Log users in."""
    with contextlib.ExitStack() as stack:

        def log_in(name: str) -> Visitor:
            visitor = stack.enter_context(Visitor(f"https://{NAME}", context))
            visitor.login(name, passwords[name])
            return visitor

        yield log_in
