"""Visitors of the hub who log in with the passwords of the machines, and the nodes of the cluster."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from lab.visitor import Account, Visitor, trust


class Person(Visitor):
    """A user whose password is easily remembered."""

    def login(self, username: str, password: str = "") -> Account:
        return self.login_here(username, password or f"password of {username}")


@pytest.fixture
def visit(
    host: Host,
    facts: dict[str, Any],
    eventually: Callable[[Callable[[], bool]], None],
    hub_answers: Callable[[], bool],
) -> Iterator[Callable[[str], Person]]:
    """Log users in; at the end their notebooks are stopped."""
    context = trust(host.file("/etc/jupyterhub/tls/ca.crt").content_string)
    eventually(hub_answers)
    with contextlib.ExitStack() as stack:
        made: list[Person] = []

        def log_in(name: str) -> Person:
            made.append(stack.enter_context(Person(f"https://{facts['address']}:8888", context)))
            made[-1].login(name)
            return made[-1]

        yield log_in
        eventually(hub_answers)
        for one in made:
            one.stop()


@pytest.fixture
def machine(host: Host) -> Callable[[str], Host]:
    """Return another machine of the scenario by its name."""

    def find(name: str) -> Host:
        return testinfra.get_host(f"ansible://{name}?ansible_inventory={host.backend.ansible_inventory}")

    return find


@pytest.fixture
def features(host: Host) -> Iterator[Callable[[str, str], None]]:
    """Give a node other features than the controller's configuration; at the end those of that."""

    def give(node: str, words: str) -> None:
        host.check_output(f"scontrol update nodename={node} availablefeatures={words} activefeatures={words}")

    yield give
    for node in ("gpu1", "gpu2"):
        give(node, "notebooks")


@pytest.fixture
def jobs(host: Host) -> Callable[..., dict[str, str]]:
    """Return the jobs of notebooks in a state: numbers by user."""

    def read(state: str = "running") -> dict[str, str]:
        lines = host.check_output(f"squeue --noheader --states={state} --format='%u %i'").splitlines()
        return dict(line.split() for line in lines)

    return read
