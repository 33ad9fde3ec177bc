# SPDX-License-Identifier: GPL-3.0-or-later
"""A template and a pool as an Ansible inventory, for those who run playbooks on what a template describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufarm import ansible, deployment, prepare
from gpufarm.errors import BadInput
from gpufarm.instances import parsed
from gpufarm.plan import Step
from gpufarm.prepare import Prepared, Request
from gpufarm.state import Store
from gpufarm.topology import CONTROLLER


@dataclass(frozen=True)
class Inventory:
    """Machines, in groups, with their variables.

    Attributes:
        pool: variables that each machine has in the pool, by its name there.
        chosen: variables that template and user chose for each machine; they win.
        groups: machines of each group. There is a group for each node of the template.
        parents: for nodes that the collection's playbooks set up: the group that the playbook works on.
    """

    pool: dict[str, Mapping[str, Any]]
    chosen: dict[str, dict[str, Any]]
    groups: dict[str, list[str]]
    parents: dict[str, str]


def chosen(store: Store, request: Request) -> Prepared:
    """Tell which machines a template has or would have.

    Args:
        store: knows the deployments. Nothing is written to it, and no machine is reserved.
        request: the template and the values of its inputs.

    Returns:
        The machines of the deployment of this name if there is one, without looking at them; otherwise those
        that it would get now.

    Raises:
        GpufarmError: in any of its kinds.
    """
    previous = store.load(request.name)
    standing = prepare.unchanged(store, request, previous) if previous else None
    return standing or deployment.choose(store, request, previous)[0]


def compose(prepared: Prepared, pool: Mapping[str, Mapping[str, Any]]) -> Inventory:
    """Make the inventory. Pure.

    Args:
        prepared: machines and steps.
        pool: variables of every host of the pool.

    Returns:
        The inventory.

    Raises:
        BadInput: two nodes want different values of one variable on one machine, which no inventory can say.
    """
    variables: dict[str, dict[str, Any]] = {entry["host"]: {} for entry in prepared.machines.values()}
    groups: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    for node in prepared.scope.topology.nodes.values():
        machine = prepared.scope.topology.machine_of(node.name)
        if machine is None:
            continue
        name, _index = parsed(node.name)
        groups.setdefault(name, []).append(prepared.machines[machine]["host"])
        if node.inventory_group:
            parents[name] = node.inventory_group
    wanted: dict[tuple[str, str], Step] = {}
    for step in (*prepared.steps, *prepared.off):
        if step.host == CONTROLLER:
            continue
        for variable, value in step.variables.items():
            other = wanted.setdefault((step.host, variable), step)
            if other.variables[variable] != value:
                raise BadInput(
                    f"{step.host}: nodes {other.node} and {step.node} want different values of {variable}, "
                    "which an inventory cannot say; use `gpufarm deploy`"
                )
            variables[step.host][variable] = value
    return Inventory({host: pool[host] for host in variables}, variables, groups, parents)


def read(store: Store, request: Request) -> Inventory:
    """Make the inventory of a template.

    Args:
        store: knows the deployments.
        request: the template, the values of its inputs and the pool.

    Returns:
        The inventory.

    Raises:
        GpufarmError: in any of its kinds.
    """
    prepared = chosen(store, request)
    return compose(prepared, ansible.inventory(prepared.pool))
