# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of the tasks of a deployment, read from the cluster that runs them; nothing is changed there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gpufarm import ansible, plan, prepare, run
from gpufarm.answers import Console, Task
from gpufarm.errors import BadInput, Interrupted
from gpufarm.functions import Scope
from gpufarm.instances import multiply, parsed
from gpufarm.plan import Step
from gpufarm.prepare import Request
from gpufarm.recorded import Claim
from gpufarm.run import Done
from gpufarm.state import MEMORY, Deployment, Store
from gpufarm.topology import Node, Topology

# Operation whose playbook may have one for the console beside it.
OPERATION = "configure"
PLAYBOOK = "console.yml"
# State of a task that has not begun.
WAITING = "waiting"


def _playbook(node: Node) -> Path | None:
    operation = node.operations.get(OPERATION)
    beside = operation.playbook.with_name(PLAYBOOK) if operation else None
    return beside if beside and beside.is_file() else None


def nodes(topology: Topology) -> list[str]:
    """Find the nodes whose tasks print something that can be read.

    Args:
        topology: a template.

    Returns:
        Their names.
    """
    return [node.name for node in topology.nodes.values() if _playbook(node)]


def _steps(store: Store, deployment: Deployment) -> list[Step]:
    """A step for each node that has a console, with the variables of its operation."""
    request = Request.made(deployment)
    given, values = prepare.remembered(request, deployment)
    numbers: dict[str, int] = {}
    for name in deployment.machines:
        base, index = parsed(name)
        numbers[base] = max(index, numbers.get(base, 1))
    topology = multiply(request.template, numbers)
    machines = [node.name for node in topology.nodes.values() if node.is_machine]
    placed = {name: deployment.machines.get(name, {"host": "", "address": ""}) for name in machines}
    scope = Scope(topology, values, files=store.files).on(
        {name: entry["address"] for name, entry in placed.items()}
    )
    hosts = {name: entry["host"] for name, entry in placed.items()}
    found = []
    for step in plan.steps(scope, hosts, frozenset(given)):
        playbook = _playbook(topology.nodes[step.node])
        if playbook and step.operation == OPERATION and step.host and not step.off:
            found.append(replace(step, playbook=playbook, outputs={}, needs=()))
    return found


class _Heard:
    """Keeps what a step has returned, or why it has failed; a listener."""

    def __init__(self) -> None:
        self.tasks: list[Mapping[str, Any]] = []
        self.failure = ""

    def started(self, step: Step) -> None:
        """A step begins."""

    def task(self, step: Step, name: str) -> None:
        """A task begins."""

    def finished(self, step: Step, done: Done) -> None:
        """Take what the step returns."""
        self.tasks = done.attributes.get("tasks", [])

    def failed(self, step: Step, failure: str, done: Done) -> None:
        """Take the reason."""
        self.failure = failure


def read(store: Store, deployment: Deployment, pool: Path | None = None) -> Console:
    """Read what the tasks of a deployment have printed.

    Tasks that began before the deployment was made belong to others, whatever their names are, unless the
    cluster itself tells that they are its own: it may have forgotten when those began.

    Args:
        store: the state.
        deployment: as it is remembered, with its secrets.
        pool: inventory to use instead of that of the deployment.

    Returns:
        The tasks, those that began last first, and why nodes did not tell theirs.

    Raises:
        BadInput: no node has tasks whose output can be read.
        GpufarmError: neither its remembered text nor its template can be used, or the pool is wrong by now.
        Interrupted: a signal stopped it.
    """
    steps = _steps(store, deployment)
    if not steps:
        raise BadInput(f"deployment {deployment.name} has no container and no job that prints anything")
    since = datetime.fromisoformat(deployment.created).timestamp()
    found = Console([], {})
    with tempfile.TemporaryDirectory(prefix="gpufarm-", dir=MEMORY) as folder, ansible.signals() as stop:
        for number, step in enumerate(steps):
            if step.name not in deployment.steps:
                found.silent[step.node] = f"{step.node} has not been set up yet"
                continue
            own, heard = Path(folder) / str(number), _Heard()
            own.mkdir(mode=0o700)
            inventory = pool or Path(deployment.pool)
            done = run.run([step], Claim(deployment.owner), inventory, own, own / "log", heard, stop)
            if done.status == "canceled":
                raise Interrupted("interrupted while output was read; nothing was changed")
            if heard.failure or done.failure:
                why = heard.failure or done.failure
                found.silent[step.node] = why.rpartition(" failed: ")[2]
            masked = sorted(step.hidden(), key=len, reverse=True)
            told = [(_task(step.node, entry, masked), entry.get("own") is True) for entry in heard.tasks]
            found.tasks.extend(
                task for task, own in told if own or task.begun >= since or task.state == WAITING
            )
    found.tasks.sort(key=lambda task: task.begun or float("inf"), reverse=True)
    return found


def _task(node: str, entry: Mapping[str, Any], masked: list[str]) -> Task:
    """A task, without the secrets of the deployment, which Mesos or the program may have printed."""

    def text(name: str) -> str:
        found = str(entry.get(name) or "")
        for secret in masked:
            found = found.replace(secret, "***")
        return found

    return Task(
        node=node,
        id=text("id"),
        machine=text("machine"),
        state=text("state"),
        reason=text("reason"),
        begun=float(entry.get("begun") or 0),
        ended=float(entry.get("ended") or 0),
        stdout=text("stdout"),
        stderr=text("stderr"),
        cut=[str(name) for name in entry.get("cut") or ()],
        unread=text("unread"),
    )
