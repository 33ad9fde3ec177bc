# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks what the properties of a template come to, once the values of inputs are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpufarm import dialect, values
from gpufarm.catalogue import Catalogue
from gpufarm.errors import NoEntry
from gpufarm.functions import Scope, Unknown
from gpufarm.interfaces import Keys
from gpufarm.library import Library
from gpufarm.problems import Report
from gpufarm.topology import Node, is_secret

_NODES: Keys = ("topology_template", "node_templates")


def examine(scope: Scope, library: Library) -> None:
    """Refuse properties whose functions come to a value that their types do not allow.

    Values without functions were checked when the template was read.

    Args:
        scope: the template and the values of its inputs. Attributes without a value are left out.
        library: it and its imports.

    Raises:
        BadTemplate: a value is wrong; it tells all of them.
        BadInput: an output cannot be computed.
    """
    catalogue, report = Catalogue(library), Report()
    for node in scope.topology.nodes.values():
        for what, expression, schema, keys in _expressions(node, catalogue):
            kind = node.texts.get(str(keys[1])) if keys[0] == "properties" else None
            wrong = ""
            if values.computed(expression):
                wrong = _wrong(dialect.read(kind, _value(scope, expression, node.name)), schema, catalogue)
            if wrong:
                hidden = is_secret(what) or any(
                    scope.topology.inputs[name].secret for name in scope.inputs_of(expression, node.name)
                )
                text = "the value is not what its type allows" if hidden else wrong
                report.add(library.template.at(*_NODES, node.name, *keys), f"{what} of {node.name}: {text}")
    report.conclude()
    for expression in scope.topology.outputs.values():
        _value(scope, expression)


def _expressions(node: Node, catalogue: Catalogue) -> Iterator[tuple[str, Any, Mapping[str, Any], Keys]]:
    """Every property of a node and of its capabilities: what it is, its value, its schema and where it is."""
    for name, schema in catalogue.members("node_types", node.type, "properties").items():
        yield f"property {name}", node.properties.get(name), schema, ("properties", name)
    for name, own in catalogue.members("node_types", node.type, "capabilities").items():
        kind = catalogue.named("capability_types", own.get("type")) or ""
        for key, schema in catalogue.members("capability_types", kind, "properties").items():
            value = node.capabilities.get(name, {}).get(key)
            yield f"property {name}.{key}", value, schema, ("capabilities", name, "properties", key)


def _wrong(value: Any, schema: Mapping[str, Any], catalogue: Catalogue) -> str:
    try:
        unset = value is None
        return "" if unset else values.fault(schema, value, catalogue.names("data_types"), plain=True)
    except values.BadSchema:
        return ""  # told where the type stands


def _value(scope: Scope, expression: Any, node: str | None = None) -> Any:
    """Return the value of an expression; None if it is not known yet."""
    if any(name not in scope.inputs for name in scope.inputs_of(expression, node)):
        return None  # given later, or not at all
    try:
        return scope.evaluate(expression, node)
    except (NoEntry, Unknown):
        return None  # such as the first of no users; returned by an operation
