# SPDX-License-Identifier: GPL-3.0-or-later
"""Complains about functions that refer to what is not there, or is not there in time."""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufarm.catalogue import Catalogue
from gpufarm.document import Document
from gpufarm.interfaces import Keys
from gpufarm.problems import Place, Report, near
from gpufarm.topology import Input, Node, Topology
from gpufarm.values import function

_SUPPORTED = ("get_input", "get_property", "get_attribute", "get_artifact", "concat")


@dataclass
class References:
    """Examines the expressions of a template.

    Attributes:
        inputs: what can be read with get_input.
        topology: what can be referred to.
        catalogue: the types.
        kinds: full name of the type of each node.
        untyped: nodes whose type is wrong; the one who found that has complained.
        report: gets the complaints.
        edges: which property needs which other ones, as (node, property).
    """

    inputs: Mapping[str, Input]
    topology: Topology
    catalogue: Catalogue
    kinds: Mapping[str, str]
    untyped: Collection[str]
    report: Report
    edges: dict[tuple[str, str], dict[tuple[str, str], Place]] = field(default_factory=dict)

    def examine(
        self,
        expression: Any,
        document: Document,
        keys: Keys,
        node: str | None = None,
        own: str | None = None,
        *,
        before: bool = True,
    ) -> None:
        """Complain about the functions in an expression, at any depth.

        Args:
            expression: as written.
            document: where it stands.
            keys: the way to it.
            node: the node that SELF refers to, if any.
            own: the property of that node that the expression is for, if any.
            before: whether the value is needed before any operation has run.
        """
        name = function(expression)
        if name is None:
            entries = (
                expression.items()
                if isinstance(expression, dict)
                else enumerate(expression)
                if isinstance(expression, list)
                else ()
            )
            for key, item in entries:
                self.examine(item, document, (*keys, key), node, own, before=before)
            return
        argument, place = expression[name], document.at(*keys, name)
        if name not in _SUPPORTED:
            self.report.add(place, f"the function {name} is not supported; use {', '.join(_SUPPORTED)}")
        elif name == "get_input":
            if isinstance(argument, list) and len(argument) == 1:
                (argument,) = argument
            if not isinstance(argument, str) or argument not in self.inputs:
                hint = near(argument, self.inputs)
                self.report.add(place, f"get_input names {argument}, which is no input; {hint}")
        elif name == "concat":
            if isinstance(argument, list) and argument:
                self.examine(argument, document, (*keys, name), node, own, before=before)
            else:
                self.report.add(place, "concat needs a list with at least one entry")
        else:
            wrong = self._reference(name, argument, place, node, own, before=before)
            if wrong:
                self.report.add(place, wrong)

    def _reference(
        self, name: str, path: Any, place: Place, node: str | None, own: str | None, *, before: bool
    ) -> str:
        """Problems of ``get_property`` or ``get_attribute``."""
        if (
            not isinstance(path, list)
            or len(path) < 2
            or not all(isinstance(part, str | int) for part in path)
        ):
            return f"{name} needs a list: a node, then a name"
        text = f"{name} [{', '.join(map(str, path))}]"
        target: str | None = str(path[0])
        if target == "SELF":
            target = node
        elif target == "HOST":
            target = self.topology.host_of(node) if node else None
        if target in self.untyped:
            return ""
        found = self.topology.nodes.get(target) if target else None
        if found is None:
            return (
                f"{text}: {path[0]} is no node here; {near(path[0], ('SELF', 'HOST', *self.topology.nodes))}"
            )
        key = str(path[1])
        if name == "get_artifact":
            known = found.artifacts
            return (
                "" if key in known else f"{text}: node {found.name} has no artifact {key}; {near(key, known)}"
            )
        if path[0] == "SELF" and len(path) > 2 and key in found.requirements:
            each = ([target, *path[2:]] for target in found.requirements[key])
            wrong = (self._reference(name, one, place, node, own, before=before) for one in each)
            return next(filter(None, wrong), "")
        if name == "get_attribute" and (key == "tosca_name" or (len(path) > 2 and key in found.capabilities)):
            return ""
        if name == "get_property" and len(path) > 2 and key in found.capabilities:
            known = self.catalogue.members("node_types", self.kinds[found.name], "capabilities")[key]
            kind = self.catalogue.named("capability_types", known.get("type"))
            properties = self.catalogue.members("capability_types", kind or "", "properties")
            if path[2] not in properties:
                return f"{text}: capability {key} has no property {path[2]}; {near(path[2], properties)}"
            return ""
        if name == "get_attribute" and key in found.attributes:
            return self._attribute(text, found, key, before=before)
        properties = self.catalogue.members("node_types", self.kinds[found.name], "properties")
        if key not in properties:
            if name == "get_property":
                return f"{text}: node {found.name} has no property {key}; {near(key, properties)}"
            everything = (*found.attributes, *properties)
            return f"{text}: node {found.name} has no attribute {key}; {near(key, everything)}"
        if key not in found.properties:
            return f"{text}: property {key} of node {found.name} has no value"
        if node and own:
            self.edges.setdefault((node, own), {}).setdefault((found.name, key), place)
        return ""

    def _attribute(self, text: str, target: Node, key: str, *, before: bool) -> str:
        address = target.is_machine and key in ("public_address", "private_address")
        if address or target.attributes[key] is not None:
            return ""
        if before:
            return f"{text} is known only after operations have run; use a property"
        if not any(key in operation.outputs.values() for operation in target.operations.values()):
            return f"{text}: no operation of {target.name} returns {key}"
        return ""

    def circles(self) -> None:
        """Complain about properties that refer to each other in a circle."""
        try:
            graphlib.TopologicalSorter({key: set(to) for key, to in self.edges.items()}).prepare()
        except graphlib.CycleError as error:
            circle = error.args[1][::-1]
            words = " -> ".join(f"{node}.{name}" for node, name in circle)
            self.report.add(
                self.edges[circle[0]][circle[1]], f"properties refer to each other in a circle: {words}"
            )
