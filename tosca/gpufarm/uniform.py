# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that ought to be equal and are not, read from them with the playbook `uniform`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpufarm import ansible
from gpufarm.answers import Uniformity
from gpufarm.errors import BadInput
from gpufarm.instances import parsed
from gpufarm.question import ask
from gpufarm.state import Deployment


def of_deployment(deployment: Deployment) -> dict[str, list[str]]:
    """Return the machines of a deployment that ought to be equal: the instances of each Compute node.

    Args:
        deployment: as it is remembered.
    """
    found: dict[str, list[str]] = {}
    for name, machine in deployment.machines.items():
        found.setdefault(parsed(name)[0], []).append(machine["host"])
    return found


def of_pool(pool: Path, groups: Sequence[str]) -> dict[str, list[str]]:
    """Return the machines of groups of an inventory.

    Args:
        pool: the inventory.
        groups: their names; none for all machines as one group.

    Raises:
        BadInput: the inventory cannot be read, or has no machine in a group.
    """
    known = ansible.members(pool)
    for group in groups:
        if not known.get(group):
            full = ", ".join(sorted(name for name, hosts in known.items() if hosts))
            raise BadInput(f"{pool} has no machine in a group {group}; there are: {full or 'none at all'}")
    return {group: known[group] for group in groups or ["all"]}


def read(pool: Path, groups: dict[str, list[str]], kept: Path | None) -> Uniformity:
    """Compare machines, which are not changed.

    Args:
        pool: the inventory.
        groups: names of the machines that ought to be equal.
        kept: folder that gets ``uniform.json`` and ``benchmarks.html``; None for none.

    Returns:
        The differences.

    Raises:
        BadInput: there is no machine to compare.
        GpufarmError: no machine has answered.
        Interrupted: a signal stopped it.
    """
    hosts = {host for members in groups.values() for host in members}
    if not hosts:
        raise BadInput(f"{pool}: there is no machine to compare; name machines in the inventory")
    patterns = {group: ",".join(members) for group, members in groups.items()}
    told = ask("uniform", [pool], hosts, {"uniform_groups": patterns}, kept, "the machines")
    answer = told.answer
    return Uniformity(
        answer["summary"], answer["differences"], answer["rows"], answer["properties"], told.silent
    )
