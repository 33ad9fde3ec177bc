# SPDX-License-Identifier: GPL-3.0-or-later
"""A service template as the deployer uses it: inputs, nodes with their operations, outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Lifecycle operations of TOSCA Simple Profile 1.3, section 5.8.4, in the order in which they are called.
DEPLOY = ("create", "configure", "start")
UNDEPLOY = ("stop", "delete")
# Where the operations of nodes are run that need no machine, as Ansible names it.
CONTROLLER = "localhost"

_SECRET = re.compile("secret|password|token|_auth$", re.IGNORECASE)
# As the variables of this collection's roles are named, such as slurm_job_owner and jupyterhub_iam_subject.
_PERSON = re.compile("(^|_)(owner|iam_subject)$")


def is_secret(name: str) -> bool:
    """Tell whether a value is a secret by its name, as the dashboards of INDIGO do.

    Args:
        name: of an input or a property.

    Returns:
        True if the name speaks of a secret, a password or a token, or ends in `_auth`, as `im_auth` does.
    """
    return bool(_SECRET.search(name))


def is_person(name: str) -> bool:
    """Tell whether a value says by its name for which person something is made.

    Args:
        name: of an input or a property.

    Returns:
        True if the name is, or ends in, `owner` or `iam_subject`.
    """
    return bool(_PERSON.search(name))


@dataclass(frozen=True)
class Input:
    """An input of the template.

    Attributes:
        name: its name.
        schema: its definition as written in the template (type, default, constraints, entry_schema).
        secret: whether its value must never be shown or stored in clear.
        person: whether its value says for which person something is made.
    """

    name: str
    schema: dict[str, Any]
    secret: bool
    person: bool

    @property
    def kind(self) -> str:
        """TOSCA type, such as ``string``."""
        return str(self.schema["type"])

    @property
    def description(self) -> str:
        """Description, or empty."""
        return str(self.schema.get("description") or "").strip()

    @property
    def default(self) -> Any:
        """Value when none is given; None if there is none."""
        return self.schema.get("default")

    @property
    def required(self) -> bool:
        """Whether the template cannot be deployed without a value."""
        return self.schema.get("required", True) is not False and self.default is None


@dataclass(frozen=True)
class Operation:
    """An operation of a node.

    Attributes:
        playbook: its implementation.
        inputs: expression of each variable that the playbook gets.
        outputs: attribute that each value returned by the playbook sets.
    """

    playbook: Path
    inputs: dict[str, Any]
    outputs: dict[str, str]


@dataclass(frozen=True)
class Node:
    """A node template.

    Attributes:
        name: its name.
        type: name of its type.
        is_machine: whether the type derives from ``tosca.nodes.Compute``.
        host: node that it is hosted on, if any.
        needs: nodes that must be set up before it.
        requirements: nodes that fulfil each requirement of the type; an optional one may have none.
        properties: expression of each property that has one, defaults of the type included.
        defaults: default of each property of the type that has one.
        attributes: default expression of each attribute of the type; None without one.
        capabilities: expression of each property of each capability.
        operations: by name.
        on_controller: whether its operations need no machine, as the type's metadata says (``runs_on:
            controller``): they ask a service that is there.
        disruption: what applying it interrupts, in the words of the type's metadata; empty if nothing.
        switch: property that switches it off when it is false, as the type's metadata says; empty if none.
        inventory_group: group of machines on which the collection's playbooks set it up, as the metadata of
            the node or of its type says; empty if there is none.
        names: variables, or entries of them with a dot between, that name what it makes, as the type's
            metadata says: another node with the same values would overwrite it.
        lists: names of the attributes that are lists.
        artifacts: expression of the file of each artifact.
        among: expression of the names of machines that may be taken for it; None for all.
        by_policy: properties whose values come from policies.
        workers: capability with the bounds of the number of INDIGO's workers; empty if it is none of them.
        texts: types of the properties of which texts are read as numbers or booleans.
    """

    name: str
    type: str
    is_machine: bool
    host: str | None
    needs: tuple[str, ...]
    properties: dict[str, Any]
    defaults: dict[str, Any]
    attributes: dict[str, Any]
    capabilities: dict[str, dict[str, Any]]
    operations: dict[str, Operation]
    on_controller: bool = False
    disruption: str = ""
    switch: str = ""
    inventory_group: str = ""
    names: tuple[str, ...] = ()
    lists: frozenset[str] = frozenset()
    artifacts: dict[str, Any] = field(default_factory=dict)
    requirements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    among: Any = None
    by_policy: frozenset[str] = frozenset()
    workers: str = ""
    texts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """A policy of the template.

    Attributes:
        name: its name.
        kinds: its type and the ancestors of that, nearest first.
        targets: names of nodes.
        properties: expression of each property that has one, defaults of the type included.
    """

    name: str
    kinds: tuple[str, ...]
    targets: tuple[str, ...]
    properties: dict[str, Any]


@dataclass(frozen=True)
class Topology:
    """A service template.

    Attributes:
        path: the file.
        name: of the template.
        inputs: by name.
        nodes: by name, in an order in which every node follows those that it needs.
        outputs: expression of each output.
        descriptions: of each output that has one.
        groups: the instances of each node of the template; empty before they are made.
        policies: by name.
        description: of the template, in one line; empty if it has none.
        text: content of the template's file.
        file_variables: names of the variables that name files of the controller.
        removal_files: names of those of them that the removal reads.
    """

    path: Path
    name: str
    inputs: dict[str, Input]
    nodes: dict[str, Node]
    outputs: dict[str, Any]
    descriptions: dict[str, str] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    description: str = ""
    text: str = field(default="", repr=False)
    file_variables: frozenset[str] = frozenset()
    removal_files: frozenset[str] = frozenset()

    def host_of(self, name: str) -> str | None:
        """Find what HOST means to a node.

        Args:
            name: of the node.

        Returns:
            The name of its machine's node, or of the node that it is hosted on where there is no machine.
        """
        return self.machine_of(name) or self.nodes[name].host

    def machine_of(self, name: str) -> str | None:
        """Find the machine that a node stands on.

        Args:
            name: of the node.

        Returns:
            The name of the machine's node; None if the node stands on none.
        """
        seen: set[str] = set()
        node: Node | None = self.nodes[name]
        while node is not None and node.name not in seen:
            if node.is_machine:
                return node.name
            seen.add(node.name)
            node = self.nodes.get(node.host) if node.host else None
        return None
