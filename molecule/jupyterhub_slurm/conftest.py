"""Visitors of the hub, who log in as it asks them to, and the nodes of the cluster."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from lab.visitor import Account, Visitor, trust


class Person(Visitor):
    """A user whose password of the machines is easily remembered."""

    def login(self, username: str, password: str = "") -> Account:
        return self.login_here(username, password or f"password of {username}")


PROVIDER = "/etc/iam/config.json"


@pytest.fixture
def visit(
    host: Host,
    bench: dict[str, Any],
    facts: dict[str, Any],
    passwords: dict[str, str],
    eventually: Callable[[Callable[[], bool]], None],
    hub_answers: Callable[[], bool],
) -> Iterator[Callable[..., Visitor]]:
    """Log users in, at the provider if the hub leads there; at the end their notebooks are stopped."""
    authority = host.file("/etc/jupyterhub/tls/ca.crt").content_string
    context = trust(authority, Path(bench["iam"]["ca_file"]).read_text())
    settings = json.loads(host.file("/etc/jupyterhub/settings.json").content_string)
    at_provider = settings["login"]["kind"] == "oidc"
    eventually(hub_answers)
    with contextlib.ExitStack() as stack:
        made: list[Visitor] = []

        def log_in(name: str, password: str = "") -> Visitor:
            kind = Visitor if at_provider else Person
            visitor = stack.enter_context(kind(f"https://{facts['address']}:8888", context))
            visitor.login(name, password or (passwords[name] if at_provider else ""))
            made.append(visitor)
            return visitor

        yield log_in
        eventually(hub_answers)
        for one in made:
            one.stop()


@pytest.fixture
def tell(machine: Callable[[str], Host]) -> Iterator[Callable[..., None]]:
    """Have the provider tell something else of a user; at the end it tells of all what it told before."""
    provider = machine("iam")
    before = provider.file(PROVIDER).content_string

    def write(content: str) -> None:
        # systemd starts a service only a few times in a row.
        restart = "systemctl reset-failed iam; systemctl restart iam"
        provider.run_expect([0], f"printf %%s %s > {PROVIDER} && {restart}", content)

    def change(user: str, **told: Any) -> None:
        config = json.loads(before)
        changed = next(one for one in config["users"] if one["name"] == user) | told
        others = [one for one in config["users"] if one["name"] not in (user, changed["name"])]
        write(json.dumps({**config, "users": [changed, *others]}))

    yield change
    write(before)


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
