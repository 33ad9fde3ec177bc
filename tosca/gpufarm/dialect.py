# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what is special in templates of INDIGO and INFN Cloud. Pure.

Their orchestrator is less strict than TOSCA, as their public templates show, which work there (infn-cloud
tosca-templates 3.4.0, indigo-dc/tosca-types and tosca-templates): an input of type string or version has
`default: 7`, one of type integer `default: "7"`, a property of type boolean is "true" or an input of type
string, and one constraint needs no list: `constraints: {in_range: [1 GB, 9 GB]}`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

# The libraries of types that templates of INDIGO-DataCloud, DEEP, INFN Cloud and EGI import by their URLs:
# repositories called tosca-types, and grycap/tosca. Their names are mapped to the roles of this collection.
LIBRARY = re.compile(r"https?://[^/]+/(.*/)?(tosca-types|grycap/tosca)/.+[.]ya?ml")
_TYPES = ("tosca.nodes.indigo.", "tosca.nodes.DODAS.")
# A part of the name of a type, and the reason why no role stands for it; the first that fits counts.
_REASONS = {
    "kubernetes": "there is no Kubernetes here",
    "helm": "there is no Kubernetes here",
    "onedata": "Onedata is not supported",
    "s3": "object storage is not supported",
}
_READ: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "float": float,
    "boolean": {"true": True, "false": False}.__getitem__,
}


def _texts(node: yaml.Node | None, value: Any) -> Any:
    """Scalars as they are written: 16.10 stays "16.10"."""
    if isinstance(node, yaml.ScalarNode) and value is not None:
        return node.value
    if isinstance(node, yaml.SequenceNode) and isinstance(value, list):
        return [_texts(item, one) for item, one in zip(node.value, value, strict=True)]
    return value


def _below(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((found for name, found in pairs if name.value == key), None)


def _texts_of(node: yaml.Node | None, depth: int = 0) -> Iterator[str]:
    """The texts of a list of imports, which are a few levels deep at most."""
    if isinstance(node, yaml.ScalarNode):
        yield node.value
    elif isinstance(node, yaml.SequenceNode | yaml.MappingNode) and depth < 4:
        for entry in node.value:
            yield from _texts_of(entry[1] if isinstance(node, yaml.MappingNode) else entry, depth + 1)


def imports_library(root: yaml.Node) -> bool:
    """Tell whether a template imports a library of INDIGO's.

    Args:
        root: the template.

    Returns:
        True if one of its imports is the URL of such a library.
    """
    return any(map(LIBRARY.fullmatch, _texts_of(_below(root, "imports"))))


def described_twice(root: yaml.Node) -> list[yaml.Node]:
    """Find the maps in which the key `description` may stand twice, as in public templates of INDIGO.

    Args:
        root: a document.

    Returns:
        The template itself and its inputs; none if it imports no library of INDIGO's.
    """
    if not imports_library(root):
        return []
    inputs = _below(_below(root, "topology_template"), "inputs")
    return [root, *(body for _name, body in inputs.value)] if isinstance(inputs, yaml.MappingNode) else [root]


def _input(schema: Mapping[str, Any], node: yaml.Node | None) -> dict[str, Any]:
    found = dict(schema)
    constraints = found.get("constraints")
    if isinstance(constraints, dict):
        constraints = [{name: value} for name, value in constraints.items()]
        found["constraints"] = constraints
    kind = found.get("type")
    if kind in ("string", "version"):
        if "default" in found:
            found["default"] = _texts(_below(node, "default"), found["default"])
        if isinstance(constraints, list):
            written = _below(node, "constraints")
            found["constraints"] = [
                _constraint(one, written.value[index] if isinstance(written, yaml.SequenceNode) else written)
                for index, one in enumerate(constraints)
            ]
    elif "default" in found:
        found["default"] = read(kind, found["default"])
    return found


def _constraint(constraint: Any, node: yaml.Node | None) -> Any:
    """A constraint of texts. It is made anew, as other inputs may share what is written."""
    if not (isinstance(constraint, dict) and isinstance(constraint.get("valid_values"), list)):
        return constraint
    return {**constraint, "valid_values": _texts(_below(node, "valid_values"), constraint["valid_values"])}


def read(kind: Any, value: Any) -> Any:
    """Read the text of a number or a boolean.

    Args:
        kind: the type that is wanted.
        value: any value.

    Returns:
        The text as a value of the type; everything else as it is.
    """
    if isinstance(kind, str) and kind in _READ and isinstance(value, str):
        with contextlib.suppress(ValueError, KeyError):
            return _READ[kind](value.lower())
    return value


def inputs(data: Mapping[str, Any], root: yaml.Node) -> dict[str, Any]:
    """Read the inputs of a template.

    Args:
        data: the template.
        root: the same as nodes, which have scalars as they are written.

    Returns:
        The template, with inputs that TOSCA allows; what cannot be understood stays as it is.
    """
    topology = data.get("topology_template")
    written = topology.get("inputs") if isinstance(topology, dict) else None
    if not isinstance(topology, dict) or not isinstance(written, dict):
        return dict(data)
    node = _below(_below(root, "topology_template"), "inputs")
    found = {
        name: _input(schema, _below(node, name)) if isinstance(schema, dict) else schema
        for name, schema in written.items()
    }
    return {**data, "topology_template": {**topology, "inputs": found}}


def properties(data: Mapping[str, Any], kinds: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
    """Read the properties of nodes, of which the texts may be numbers or booleans.

    Args:
        data: the template.
        kinds: gives the schemas of the properties of a type of nodes.

    Returns:
        The template, with values that TOSCA allows. Those of functions are read when they are computed.
    """
    topology = data.get("topology_template")
    nodes = topology.get("node_templates") if isinstance(topology, dict) else None
    if not isinstance(topology, dict) or not isinstance(nodes, dict):
        return dict(data)
    found = {}
    for name, node in nodes.items():
        written = node.get("properties") if isinstance(node, dict) else None
        if isinstance(written, dict):
            schemas = kinds(str(node.get("type")))
            values = {key: read(schemas.get(key, {}).get("type"), one) for key, one in written.items()}
            node = {**node, "properties": values}
        found[name] = node
    return {**data, "topology_template": {**topology, "node_templates": found}}


def refusal(kind: str) -> str:
    """Say why a type of INDIGO's or INFN's libraries is not taken.

    Args:
        kind: a name for which there is no type here.

    Returns:
        A sentence; empty if the name is from no such library.
    """
    if not kind.startswith(_TYPES):
        return ""
    why = next((why for word, why in _REASONS.items() if word in kind.lower()), "no role here stands for it")
    return f"the type {kind} is not supported: {why}; docs/indigo.md lists the types that are"
