"""The hub by its name, which leads to the machine under test."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Visitor, trust

NAME = "hub.example.test"


@pytest.fixture
def visit(
    host: Host,
    bench: dict[str, Any],
    facts: dict[str, Any],
    passwords: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str], Visitor]]:
    """Log users in."""
    ask = socket.getaddrinfo

    def answer(name: Any, *arguments: Any, **options: Any) -> Any:
        return ask(facts["address"] if name in (NAME, NAME.encode()) else name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    authority = host.file("/etc/jupyterhub/tls/ca.crt").content_string
    context = trust(authority, Path(bench["iam"]["ca_file"]).read_text())
    with contextlib.ExitStack() as stack:

        def log_in(name: str) -> Visitor:
            visitor = stack.enter_context(Visitor(f"https://{NAME}:8888", context))
            visitor.login(name, passwords[name])
            return visitor

        yield log_in


@pytest.fixture
def hostname(host: Host) -> str:
    return host.check_output("hostname")
