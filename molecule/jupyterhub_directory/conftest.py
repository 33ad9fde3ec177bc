"""Visitors who log in with a password in the hub's own form."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from testinfra.host import Host

from lab.visitor import Account, Visitor, trust


class FormVisitor(Visitor):
    """A user of a hub that asks for passwords itself, whose passwords are easily remembered."""

    def login(self, username: str, password: str = "") -> Account:
        return self.login_here(username, password or f"password of {username}")


@pytest.fixture
def visitor(host: Host) -> Iterator[Callable[[], FormVisitor]]:
    """Make visitors; at the end their notebooks are stopped."""
    done = subprocess.run(["lab", "status", "--json"], capture_output=True, text=True, check=True)
    address = json.loads(done.stdout)["hosts"][0]["address"]
    context = trust(host.file("/etc/jupyterhub/tls/ca.crt").content_string)
    end = time.monotonic() + 60
    while host.run("curl --fail --silent http://127.0.0.1:8081/hub/api/").rc:
        assert time.monotonic() < end, "the hub does not answer"
        time.sleep(0.5)
    with contextlib.ExitStack() as stack:
        made: list[FormVisitor] = []

        def make() -> FormVisitor:
            made.append(stack.enter_context(FormVisitor(f"https://{address}:8888", context)))
            return made[-1]

        yield make
        for one in made:
            if one._name and one.running():
                one.stop()
