"""Visitors who log in with a password of the machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Visitor, trust


@pytest.fixture
def notebook(
    host: Host,
    facts: dict[str, Any],
    eventually: Callable[[Callable[[], bool]], None],
    hub_answers: Callable[[], bool],
) -> Iterator[Callable[[str], Visitor]]:
    """Log a user in and start the notebook; at the end it is stopped."""
    context = trust(host.file("/etc/jupyterhub/tls/ca.crt").content_string)
    eventually(hub_answers)
    with contextlib.ExitStack() as stack:

        def start(name: str) -> Visitor:
            visitor = stack.enter_context(Visitor(f"https://{facts['address']}:8888", context))
            visitor.login_here(name, f"password of {name}")
            stack.callback(visitor.stop)
            visitor.spawn()
            return visitor

        yield start
