"""Visitors who log in with a password in the hub's own form."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testinfra.host import Host

from lab.visitor import Account, Visitor, trust


class FormVisitor(Visitor):
    """A user of a hub that asks for passwords itself, whose passwords are easily remembered."""

    def login(self, username: str, password: str = "") -> Account:
        return self.login_here(username, password or f"password of {username}")


@pytest.fixture
def visitor(
    host: Host,
    facts: dict[str, Any],
    eventually: Callable[[Callable[[], bool]], None],
    hub_answers: Callable[[], bool],
) -> Iterator[Callable[[], FormVisitor]]:
    """Make visitors; at the end their notebooks are stopped."""
    context = trust(host.file("/etc/jupyterhub/tls/ca.crt").content_string)
    eventually(hub_answers)
    with contextlib.ExitStack() as stack:
        made: list[FormVisitor] = []

        def make() -> FormVisitor:
            made.append(stack.enter_context(FormVisitor(f"https://{facts['address']}:8888", context)))
            return made[-1]

        yield make
        for one in made:
            if one._name:
                one.stop()
