"""Visitors who use the collaborative JupyterLab."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Visitor, trust


@pytest.fixture
def visit(
    host: Host, bench: dict[str, Any], facts: dict[str, Any], passwords: dict[str, str]
) -> Iterator[Callable[[str], Visitor]]:
    """Log users in; the server that they share goes on when they leave."""
    authority = host.file("/etc/jupyterhub/tls/ca.crt").content_string
    context = trust(authority, Path(bench["iam"]["ca_file"]).read_text())
    with contextlib.ExitStack() as stack:

        def log_in(name: str) -> Visitor:
            visitor = stack.enter_context(Visitor(f"https://{facts['address']}:8888", context))
            visitor.login(name, passwords[name])
            visitor.use_server_of("collaborative")
            return visitor

        yield log_in
