# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells which machines deployments hold, also where a state file cannot be used. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpufarm.state import Deployment

Machines = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Record:
    """A deployment as far as its files can be read.

    Attributes:
        name: of the deployment, as its file is named.
        holder: name of the deployment that has the machines; another one if the file is a copy.
        machines: ``host`` and ``address`` of each Compute node that it holds, or may hold.
        deployment: its state; None if that cannot be used.
        problem: why not, and the next step; empty if it can.
        certain: False if it may hold machines that nothing names.
    """

    name: str
    holder: str
    machines: Machines = field(default_factory=dict)
    deployment: Deployment | None = None
    problem: str = ""
    certain: bool = True

    def warning(self) -> str:
        """Say what the problem means for other deployments.

        Returns:
            A sentence; empty if no machine is concerned.
        """
        if not self.problem or (self.certain and not self.machines):
            return ""
        if not self.certain:
            return f"{self.problem}; until then it may hold any machine, so no machine is given to others"
        held = ", ".join(f"{node}: {machine['host']}" for node, machine in self.machines.items())
        return f"{self.problem}; until then it keeps {held}"


def is_machine(value: Any) -> bool:
    """Tell whether a value describes a machine.

    Args:
        value: anything that JSON can carry.

    Returns:
        True if it has a ``host`` and an ``address``.
    """
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("host", "address"))


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):
        return None


def machines_in(text: str | None) -> Machines | None:
    """Read a list of machines.

    Args:
        text: of the file; None if there is none.

    Returns:
        The machines; None if the list is missing or damaged.
    """
    found = _parsed(text)
    return found if isinstance(found, dict) and all(map(is_machine, found.values())) else None


def sound(deployment: Deployment, listed: Machines | None) -> Record:
    """Tell what a deployment holds. If state and list differ, both count: no machine is given twice.

    Args:
        deployment: its state.
        listed: machines in the list beside the state; None if there is none.

    Returns:
        The record.
    """
    return Record(deployment.name, deployment.name, (listed or {}) | deployment.machines, deployment)


def unusable(name: str, text: str | None, listed: Machines | None, problem: str) -> Record:
    """Tell what a deployment holds of which the state cannot be used.

    Args:
        name: of the deployment.
        text: of its state file; None if that is missing or cannot be opened.
        listed: machines in the list beside the state; None if there is none.
        problem: why the state cannot be used.

    Returns:
        The record.
    """
    content = _parsed(text)
    state = content if isinstance(content, dict) else {}
    stated = state.get("machines")
    entries = stated if isinstance(stated, dict) else {}
    machines = {node: entry for node, entry in entries.items() if is_machine(entry)}
    # JSON that is no state of this program: something else that lies in the folder
    foreign = content is not None and not {"format", "machines"} & state.keys()
    whole = isinstance(stated, dict) and len(machines) == len(entries)
    holder = state["name"] if isinstance(state.get("name"), str) else name
    certain = whole or foreign or listed is not None
    return Record(name, holder, (listed or {}) | machines, None, problem, certain)


def held(records: Iterable[Record], name: str, addresses: Iterable[str]) -> dict[str, str]:
    """List the machines that are not free.

    Args:
        records: of all deployments.
        name: of the deployment that asks; its own machines are free for it.
        addresses: of the machines to choose from.

    Returns:
        The deployment that holds each address. If it is unknown what a deployment holds, it holds them all.
    """
    others = [record for record in records if record.holder != name]
    found: dict[str, str] = {}
    for record in sorted(others, key=lambda record: not record.problem):  # sound files name the holder
        kept = {machine["address"] for machine in record.machines.values()}
        if record.certain:
            found |= dict.fromkeys(kept, record.holder)
        else:
            found |= dict.fromkeys(kept.union(addresses), f"{record.holder}, as far as is known")
    return found
