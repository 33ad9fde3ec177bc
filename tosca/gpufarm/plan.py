# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of a deployment, with their order and variables. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufarm import files
from gpufarm.errors import BadInput
from gpufarm.functions import Scope, Unknown
from gpufarm.instances import parsed
from gpufarm.secrecy import HIDDEN, forms, veiled
from gpufarm.topology import CONTROLLER, DEPLOY, UNDEPLOY, Node, Operation, Topology, is_secret


@dataclass(frozen=True)
class Step:
    """One operation of one node on one machine.

    Attributes:
        node: the node.
        operation: its operation.
        host: machine in the inventory.
        playbook: the operation's implementation.
        variables: what the playbook gets.
        secrets: names of the variables whose values must not be shown.
        outputs: attribute that each value returned by the playbook sets.
        needs: names of the steps that have to be done before.
        disruption: what it interrupts, as its type says; empty if nothing.
        switch: name of the variable that switches the node off when it is false; empty if none does.
        named: values that name what it makes.
    """

    node: str
    operation: str
    host: str
    playbook: Path
    variables: dict[str, Any]
    secrets: frozenset[str]
    outputs: dict[str, str]
    needs: tuple[str, ...] = ()
    disruption: str = ""
    switch: str = ""
    named: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Such as ``hub.configure``."""
        return f"{self.node}.{self.operation}"

    @property
    def off(self) -> bool:
        """Whether the node is switched off."""
        return self.variables.get(self.switch) is False

    def public(self) -> dict[str, Any]:
        """The variables as they may be shown.

        Returns:
            A copy with the secrets replaced.
        """
        return {
            key: HIDDEN if key in self.secrets else veiled(value) for key, value in self.variables.items()
        }

    def hidden(self) -> set[str]:
        """The texts that must not be seen anywhere.

        Returns:
            Every secret, in all its forms.
        """
        return {
            form for key, value in self.variables.items() for form in forms(value, whole=key in self.secrets)
        }


@dataclass(frozen=True)
class Inherited:
    """Knows which defaults of a former release a deployment had from the pool instead.

    Attributes:
        inputs: those that nobody gave and that keep the default of a former release.
        passed: variables that the last run passed to all instances of each node of the template.
        pool: variables that the inventory has for each machine.
    """

    inputs: frozenset[str] = frozenset()
    passed: Mapping[str, Collection[str]] = field(default_factory=dict)
    pool: Mapping[str, Collection[str]] = field(default_factory=dict)

    def leaves(self, node: str, host: str, variable: str, used: set[str]) -> bool:
        """Tell whether the inventory says a variable, as it did when the default was also the type's.

        Args:
            node: an instance.
            host: its machine.
            variable: its name.
            used: inputs that its value is made of.

        Returns:
            Whether the variable is not passed.
        """
        passed = self.passed.get(parsed(node)[0])
        unsaid = passed is not None and variable not in passed
        return bool(used) and used <= self.inputs and unsaid and variable in self.pool.get(host, ())


def _own_property(node: Node, expression: Any) -> str | None:
    """The property that ``{get_property: [SELF, name]}`` names."""
    path = expression.get("get_property") if isinstance(expression, dict) and len(expression) == 1 else None
    if isinstance(path, list) and len(path) == 2 and path[0] in ("SELF", node.name):
        return str(path[1]) if str(path[1]) in node.properties else None
    return None


def _variables(
    node: Node,
    operation: Operation,
    host: str,
    scope: Scope,
    given: frozenset[str],
    inherited: Inherited,
    *,
    undeploy: bool,
) -> tuple[dict[str, Any], frozenset[str]]:
    """Variables of an operation, and which of them are secret.

    A property that nobody chose is not passed: the role has the same default, and the inventory of the pool
    may set something that fits the site, such as a package mirror. A removal gets only the files that it
    reads: the others may be gone by then.
    """
    topology = scope.topology
    variables = {}
    secrets = set()
    for variable, expression in operation.inputs.items():
        own = _own_property(node, expression)
        source = node.properties[own] if own else expression
        used = scope.inputs_of(source, node.name)
        value = _value(node, expression, scope)
        if (
            own == variable
            and not used & given
            and (value == node.defaults.get(own) or inherited.leaves(node.name, host, variable, used))
        ):
            continue
        if value is None:
            continue
        if undeploy and variable in topology.file_variables - topology.removal_files:
            continue
        if variable in topology.file_variables:
            what = f"input {', '.join(sorted(used))}" if used else f"property {variable} of node {node.name}"
            value = files.path(scope.files, what, value)
        variables[variable] = value
        named = is_secret(variable) and not isinstance(value, bool)
        if named or any(topology.inputs[name].secret for name in used):
            secrets.add(variable)
    return variables, frozenset(secrets)


def _value(node: Node, expression: Any, scope: Scope) -> Any:
    own = _own_property(node, expression)
    return scope.property(node, own) if own else scope.evaluate(expression, node.name)


def names(node: Node, operation: Operation, scope: Scope) -> dict[str, Any]:
    """Tell the names of what an operation makes.

    Args:
        node: the node.
        operation: one of its operations.
        scope: the template and its values.

    Returns:
        Values by the words of the type's metadata, such as ``chronos_job_definition.name``.
    """
    found = {}
    for path in node.names:
        name, _dot, key = path.partition(".")
        value = _value(node, operation.inputs.get(name), scope)
        found[path] = value.get(key) if key and isinstance(value, Mapping) else value
    return found


def _before(topology: Topology, *, undeploy: bool) -> dict[str, tuple[str, ...]]:
    """The nodes that have to be dealt with before each node, in an order in which they can be."""
    if not undeploy:
        return {node.name: node.needs for node in topology.nodes.values()}
    users: dict[str, list[str]] = {name: [] for name in topology.nodes}
    for node in topology.nodes.values():
        for need in node.needs:
            users[need].append(node.name)
    return {name: tuple(users[name]) for name in reversed(topology.nodes)}


def without(steps: Iterable[Step], names: Collection[str]) -> list[Step]:
    """Leave steps out; what needs them needs instead what they need.

    Args:
        steps: each after those that it needs.
        names: of the steps to leave out.

    Returns:
        The other steps, in the same order.
    """
    needs: dict[str, tuple[str, ...]] = {}
    found = []
    for step in steps:
        own = tuple(dict.fromkeys(name for need in step.needs for name in needs.get(need, (need,))))
        if step.name in names:
            needs[step.name] = own
        else:
            found.append(replace(step, needs=own))
    return found


def steps(
    scope: Scope,
    hosts: Mapping[str, str],
    given: frozenset[str],
    inherited: Inherited = Inherited(),
    *,
    undeploy: bool = False,
) -> list[Step]:
    """Order the operations of a template.

    Args:
        scope: the template and its values.
        hosts: machine of the inventory for each Compute node.
        given: names of the inputs that the user gave.
        inherited: the variables that the inventory says in place of defaults of a former release.
        undeploy: list the operations that take everything away, in the opposite order.

    Returns:
        The steps; each comes after those that it needs.

    Raises:
        BadInput: an operation cannot be run as the template has it.
    """
    topology = scope.topology
    found = []
    holders: dict[tuple[str | None, str], str] = {}
    last: dict[str, tuple[str, ...]] = {}
    for name, before in _before(topology, undeploy=undeploy).items():
        node = topology.nodes[name]
        needs = tuple(dict.fromkeys(step for entry in before for step in last[entry]))
        for operation_name in UNDEPLOY if undeploy else DEPLOY:
            operation = node.operations.get(operation_name)
            if operation is None:
                continue
            machine = topology.machine_of(name)
            if machine is None and not node.on_controller:
                raise BadInput(f"{topology.path}: node {name} stands on no machine; add the requirement host")
            host = hosts[machine] if machine else CONTROLLER
            try:
                variables, secrets = _variables(
                    node, operation, host, scope, given, inherited, undeploy=undeploy
                )
                named = {} if undeploy else names(node, operation, scope)
            except Unknown as error:
                raise BadInput(
                    f"{topology.path}: node {name} uses attribute {error.attribute} of node "
                    f"{error.node}, which is known only afterwards; use a property"
                ) from error
            if named and all(named.values()):
                other = holders.setdefault((machine, str(named)), name)
                if other != name:
                    place = f" on machine {machine}" if machine else ""
                    told = " and ".join(f"{path}, {value}" for path, value in named.items())
                    raise BadInput(
                        f"{topology.path}: nodes {other} and {name}{place} have the same {told}; "
                        "give each a name of its own"
                    )
            step = Step(
                node=name,
                operation=operation_name,
                host=host,
                playbook=operation.playbook,
                variables=variables,
                secrets=secrets,
                outputs=operation.outputs,
                needs=needs,
                disruption=node.disruption,
                switch=node.switch,
                named=named,
            )
            found.append(step)
            needs = (step.name,)
        last[name] = needs
    return found
