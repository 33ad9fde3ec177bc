# SPDX-License-Identifier: GPL-3.0-or-later
"""Multiplies machines, and all that stands on them, by the number of instances (TOSCA 1.3, 5.5.13). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpufarm.errors import BadInput
from gpufarm.functions import Scope, Unknown
from gpufarm.problems import near
from gpufarm.topology import Node, Topology

# Far more machines than one deployment has; it stops a typing error from filling the memory.
MOST = 10_000
_NUMBERED = re.compile(r"(.+)\[([0-9]+)\]")


def named(name: str, index: int) -> str:
    """Name an instance.

    Args:
        name: of the node in the template.
        index: of the instance, counted from 1.

    Returns:
        The name itself for the first one, so that scaling renames nothing; ``name[2]`` for the second.
    """
    return name if index == 1 else f"{name}[{index}]"


def parsed(name: str) -> tuple[str, int]:
    """Take the name of an instance apart.

    Args:
        name: as `named` made it.

    Returns:
        The node in the template and the index.
    """
    found = _NUMBERED.fullmatch(name)
    return (found.group(1), int(found.group(2))) if found else (name, 1)


def bounds(node: Node) -> tuple[int, int, int]:
    """Read how many instances a machine may have.

    Args:
        node: a Compute node of the template.

    Returns:
        The smallest number, the default and the largest.
    """
    scalable = node.capabilities.get("scalable", {})
    low, high = int(scalable.get("min_instances", 1)), int(scalable.get("max_instances", 1))
    return low, int(scalable.get("default_instances") or low), high


def _wanted(name: str, node: Node, scope: Scope) -> tuple[int, int, int]:
    """The bounds of a machine. INDIGO's `count`, and the largest number of workers, may come from inputs."""
    low, default, high = bounds(node)
    count = _number(scope, node, "scalable", "count")
    if count is None:
        return low, default, high
    workers = [entry for entry in scope.topology.nodes.values() if entry.host == name and entry.workers]
    if workers and count == 0:
        count = 1  # clouds start the first one when there is work; here nobody would
    if count < 1:
        raise BadInput(f"{scope.topology.path}: node {name} has a count of {count}; it has to be 1 or more")
    most = (_number(scope, entry, entry.workers, "max_instances") or 1 for entry in workers)
    return min(low, count), count, max(high, count, *most)


def _number(scope: Scope, node: Node, capability: str, name: str) -> int | None:
    """A number of instances, which may come from an input; None if nothing says it."""
    try:
        value = scope.evaluate(node.capabilities.get(capability, {}).get(name), node.name)
    except Unknown as error:
        raise BadInput(
            f"{scope.topology.path}: {name} of node {node.name} needs {error.attribute} of {error.node}, "
            "which is known only after the machines are chosen; use a number or an input"
        ) from error
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise BadInput(
            f"{scope.topology.path}: {name} of node {node.name} has to be an integer, not {value!r}"
        )
    return value


def counts(topology: Topology, inputs: Mapping[str, Any], chosen: Mapping[str, int]) -> dict[str, int]:
    """Tell how many instances each machine has.

    Args:
        topology: the template.
        inputs: value of every input that has one.
        chosen: numbers that the user chose.

    Returns:
        The number for each Compute node.

    Raises:
        BadInput: a number was chosen for what is no machine, or is out of bounds.
    """
    scope = Scope(topology, inputs)
    machines = {name: _wanted(name, node, scope) for name, node in topology.nodes.items() if node.is_machine}
    for name, number in chosen.items():
        if name not in machines:
            raise BadInput(f"{name} is no machine of {topology.path.name}; {near(name, machines)}")
        low, _default, high = machines[name]
        if not low <= number <= high:
            span = f"{low} to {high} instances" if low < high else f"{low} instance{'s' if low > 1 else ''}"
            raise BadInput(
                f"{name}={number}: {topology.path.name} allows {span}; "
                "change its capability scalable (min_instances, max_instances) to allow more"
            )
    found = {name: chosen.get(name, default) for name, (_low, default, _high) in machines.items()}
    for name, number in found.items():
        if number > MOST:
            raise BadInput(
                f"{name}: {number} instances are more than the {MOST} that can be managed; ask for fewer"
            )
    return found


def multiply(topology: Topology, numbers: Mapping[str, int]) -> Topology:
    """Make the instances.

    Nodes on the same machine stay together: a requirement leads to the node on the same instance.
    Between machines it leads to all instances.

    Args:
        topology: the template.
        numbers: of instances of each Compute node.

    Returns:
        A topology in which every instance is a node of its own.
    """
    ground = {name: topology.machine_of(name) for name in topology.nodes}

    def instances(name: str) -> Iterable[int]:
        machine = ground[name]
        return range(1, numbers.get(machine, 1) + 1) if machine else (1,)

    def leads_to(name: str, target: str, index: int) -> list[str]:
        if ground[target] is not None and ground[target] == ground[name]:
            return [named(target, index)]
        return [named(target, number) for number in instances(target)]

    found = {}
    for name, node in topology.nodes.items():
        for index in instances(name):
            found[named(name, index)] = replace(
                node,
                name=named(name, index),
                host=named(node.host, index) if node.host else None,
                needs=tuple(entry for need in node.needs for entry in leads_to(name, need, index)),
                requirements={
                    requirement: tuple(entry for target in targets for entry in leads_to(name, target, index))
                    for requirement, targets in node.requirements.items()
                },
            )
    groups = {name: tuple(named(name, index) for index in instances(name)) for name in topology.nodes}
    return replace(topology, nodes=found, groups=groups)
