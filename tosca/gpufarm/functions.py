# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates the functions of TOSCA 1.3, chapter 4, that templates here may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufarm import dialect
from gpufarm.errors import BadInput, NoEntry
from gpufarm.topology import Node, Topology

_OTHERS = ("get_operation_output", "get_nodes_of_type", "token", "join")


# References that lead further than this go round in a circle.
MAX_DEPTH = 50
# Attribute of tosca.nodes.gpufarm.Compute that means all instances, also to what stands on one of them.
ADDRESSES = "addresses"


class Unknown(Exception):
    """An attribute has no value yet.

    Attributes:
        node: whose attribute it is.
        attribute: its name.
    """

    def __init__(self, node: str, attribute: str) -> None:
        super().__init__(f"attribute {attribute} of node {node} has no value yet")
        self.node = node
        self.attribute = attribute


@dataclass(frozen=True)
class Scope:
    """Names that expressions can refer to.

    Attributes:
        topology: the template.
        inputs: value of every input that has one.
        attributes: value of each known attribute, by node.
        files: folder with the files of the controller that properties name.
    """

    topology: Topology
    inputs: Mapping[str, Any]
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: Path = Path("/nowhere")

    def on(self, addresses: Mapping[str, str]) -> Scope:
        """Say where the machines are.

        Args:
            addresses: of each Compute node.

        Returns:
            A scope in which the attributes of these nodes have values.
        """
        known = {
            node: {
                name: [address] if name in self.topology.nodes[node].lists else address
                for name in ("public_address", "private_address")
            }
            for node, address in addresses.items()
        }
        return replace(self, attributes=known)

    def evaluate(self, expression: Any, node: str | None = None, depth: int = 0) -> Any:
        """Compute the value of an expression.

        Args:
            expression: a value that may contain functions at any depth.
            node: the node that SELF and HOST refer to; None outside of a node.
            depth: how many references led here.

        Returns:
            The value.

        Raises:
            BadInput: the expression refers to something that is not there.
            Unknown: it refers to an attribute that has no value yet.
        """
        if depth > MAX_DEPTH:
            raise BadInput(f"{self.topology.path}: properties of node {node} refer to each other in a circle")
        if isinstance(expression, list):
            return [self.evaluate(item, node, depth) for item in expression]
        if not isinstance(expression, dict):
            return expression
        name = next(iter(expression)) if len(expression) == 1 else None
        if name in _OTHERS:
            raise BadInput(f"{self.topology.path}: the function {name} is not supported; node {node} uses it")
        if name == "get_input":
            return self._input(expression[name])
        if name == "concat":
            parts = self.evaluate(expression[name], node, depth)
            if not isinstance(parts, list):
                raise BadInput(f"{self.topology.path}: concat needs a list")
            for part in parts:
                if part is None or isinstance(part, dict):
                    what = "something without a value" if part is None else "a map"
                    place = f"node {node}" if node else "an output"
                    raise BadInput(f"{self.topology.path}: concat in {place} has {what}; give it texts")
            return "".join(map(str, parts))
        if name in ("get_property", "get_attribute", "get_artifact"):
            return self._reference(str(name), expression[name], node, depth)
        return {key: self.evaluate(item, node, depth) for key, item in expression.items()}

    def property(self, node: Node, name: str, depth: int = 0) -> Any:
        """Compute the value of a property.

        Args:
            node: whose property it is.
            name: of the property, which has a value.
            depth: how many references led here.

        Returns:
            The value.

        Raises:
            BadInput: it refers to something that is not there.
            Unknown: it refers to an attribute that has no value yet.
        """
        return dialect.read(node.texts.get(name), self.evaluate(node.properties[name], node.name, depth))

    def inputs_of(self, expression: Any, node: str | None = None, depth: int = 0) -> set[str]:
        """Tell which inputs the value of an expression is made of, through properties of any node.

        Args:
            expression: a value that may contain functions at any depth.
            node: the node that SELF and HOST refer to; None outside of a node.
            depth: how many references led here.

        Returns:
            Their names.
        """
        if isinstance(expression, list):
            return set().union(*(self.inputs_of(item, node, depth) for item in expression))
        if not isinstance(expression, dict) or depth > MAX_DEPTH:
            return set()
        if len(expression) == 1 and "get_input" in expression:
            name = expression["get_input"]
            return {str(name[0] if isinstance(name, list) and name else name)} & set(self.topology.inputs)
        for function in ("get_property", "get_attribute", "get_artifact"):
            path = expression.get(function) if len(expression) == 1 else None
            if isinstance(path, list) and len(path) > 1:
                read = [
                    (target.name, self._read(target, path))
                    for target in self._targets(str(path[0]), node, function)
                ]
                return set().union(*(self.inputs_of(source, name, depth + 1) for name, source in read))
        return set().union(*(self.inputs_of(item, node, depth) for item in expression.values()))

    def _read(self, target: Node, path: list[Any]) -> Any:
        """The expression that a reference leads to; None for an attribute that an operation returns."""
        name = str(path[1])
        if name in target.artifacts:
            return target.artifacts[name]
        if name in target.capabilities and len(path) > 2:
            return target.capabilities[name].get(path[2])
        return target.properties.get(name, target.attributes.get(name))

    def _input(self, name: Any) -> Any:
        if isinstance(name, list) and len(name) == 1:
            (name,) = name
        if not isinstance(name, str) or name not in self.topology.inputs:
            raise BadInput(f"{self.topology.path}: get_input names {name}, which is no input")
        return self.inputs.get(name)

    def _reference(self, function: str, path: Any, node: str | None, depth: int) -> Any:
        text = f"{function} {path}"
        if (
            not isinstance(path, list)
            or len(path) < 2
            or not all(isinstance(part, str | int) for part in path)
        ):
            raise BadInput(f"{self.topology.path}: {text} has to be a list: a node, then a name")
        fulfilled = self.topology.nodes[node].requirements if node and path[0] == "SELF" else {}
        if len(path) > 2 and path[1] in fulfilled:  # TOSCA 1.3, section 4.4.2.1
            several = [self._reference(function, [one, *path[2:]], node, depth) for one in fulfilled[path[1]]]
            return several if len(several) > 1 else next(iter(several), None)
        targets = self._targets(str(path[0]), node, text)
        if function == "get_attribute" and path[1] == ADDRESSES and targets[0].is_machine:
            targets = self._alike(targets[0])
        if function == "get_attribute" and path[1] in targets[0].lists and targets[0].is_machine:
            # INDIGO's machines have lists of addresses: those of all instances, one after the other
            several = [self._value(function, target, [path[1]], text, depth) for target in targets]
            return self._entry([address for addresses in several for address in addresses], path[2:], text)
        found = [self._value(function, target, list(path[1:]), text, depth) for target in targets]
        # several instances have one attribute each; their properties are those of the template
        return found if len(found) > 1 and function == "get_attribute" else found[0]

    def _value(self, function: str, target: Node, rest: list[Any], text: str, depth: int) -> Any:
        if function == "get_artifact":
            if rest[0] not in target.artifacts:
                raise BadInput(f"{self.topology.path}: {text}: node {target.name} has no artifact {rest[0]}")
            return self.evaluate(target.artifacts[rest[0]], target.name, depth + 1)
        if function == "get_attribute" and rest == ["tosca_name"]:
            return target.name  # TOSCA 1.3, section 5.9.1.2
        if rest[0] in target.capabilities and len(rest) > 1:
            found = self.evaluate(target.capabilities[rest.pop(0)].get(rest.pop(0)), target.name, depth + 1)
        elif function == "get_property" and rest[0] in target.properties:
            found = self.property(target, rest.pop(0), depth + 1)
        elif function == "get_attribute" and rest[0] in target.attributes:
            found = self._attribute(target, str(rest.pop(0)), depth)
        elif function == "get_attribute" and rest[0] in target.properties:
            # every property is reflected as an attribute (TOSCA 1.3, section 2.6)
            found = self.property(target, rest.pop(0), depth + 1)
        else:
            raise BadInput(f"{self.topology.path}: {text}: node {target.name} has no {rest[0]} with a value")
        return self._entry(found, rest, text)

    def _entry(self, value: Any, keys: list[Any], text: str) -> Any:
        """Value at the end of a path through lists and maps."""
        for key in keys:
            try:
                value = value[int(key)] if isinstance(value, list) else dict(value)[key]
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise NoEntry(f"{self.topology.path}: {text}: there is no {key} in it") from error
        return value

    def _targets(self, name: str, node: str | None, text: str) -> list[Node]:
        """The nodes that are meant: on the same machine the one beside, elsewhere all instances."""
        machine = self.topology.machine_of(node) if node else None
        chosen: list[str | None] = [*self.topology.groups.get(name, (name,))]
        if name == "SELF":
            chosen = [node]
        elif name == "HOST":
            chosen = [self.topology.host_of(node) if node else None]
        elif machine and len(chosen) > 1:
            beside = [entry for entry in chosen if entry and self.topology.machine_of(entry) == machine]
            chosen = [*beside] or chosen
        found = [self.topology.nodes[entry] for entry in chosen if entry in self.topology.nodes]
        if not found:
            raise BadInput(f"{self.topology.path}: {text}: {name} is no node of the template")
        return found

    def _alike(self, target: Node) -> list[Node]:
        """All instances of a machine."""
        group = next(
            (entry for entry in self.topology.groups.values() if target.name in entry), (target.name,)
        )
        return [self.topology.nodes[name] for name in group]

    def _attribute(self, target: Node, name: str, depth: int) -> Any:
        values = self.attributes.get(target.name, {})
        if name in values:
            return values[name]
        if target.attributes[name] is None:
            raise Unknown(target.name, name)
        return self.evaluate(target.attributes[name], target.name, depth + 1)
