# SPDX-License-Identifier: GPL-3.0-or-later
"""Converts what forms of the dashboard send, mostly texts, to values of the types of a template. Pure."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping
from typing import Any

from gpufarm import document, values
from gpufarm.errors import BadInput, BadTemplate
from gpufarm.problems import near
from gpufarm.serve.offers import Offered

# The form adds it to each template.
DESCRIPTION = "additional_description"
# Letters of a list or a map that was written as a text, and levels in any value.
LONGEST = 65_536
DEEPEST = 20
# Mistakes that are told at once.
MOST = 20
_SIMPLE = ("integer", "float", "number", "boolean")


def given(offered: Offered, parameters: Mapping[str, Any], ours: Collection[str] = ()) -> dict[str, Any]:
    """Convert the parameters of a request.

    Args:
        offered: the template.
        parameters: as the client sent them.
        ours: names of inputs that the service sets.

    Returns:
        The values by name. Those of the service, empty fields and the additional description are left out.

    Raises:
        BadInput: there is no such input, or a text is no value of its type; all of them are told.
    """
    known = offered.topology.inputs
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in parameters.items():
        if len(wrong) == MOST:
            wrong.append(f"more than {MOST} parameters are wrong; correct these first")
            break
        if name not in known:
            if name != DESCRIPTION:
                template = offered.offer.name
                wrong.append(f"template {template} has no input {name[:100]}; {near(name[:100], known)}")
            continue
        if name in ours or value is None or value == "":
            continue
        try:
            found[name] = _converted(known[name].schema, value, offered.data_types)
        except ValueError as error:
            hidden = known[name].secret
            wrong.append(f"input {name}: {'the value is of another type' if hidden else error}")
    if wrong:
        raise BadInput("\n".join(wrong))
    return found


def too_deep(value: Any) -> bool:
    """Tell whether a value has more levels than functions that call themselves can follow.

    Args:
        value: anything that JSON can carry.

    Returns:
        True if it has.
    """
    left = [(value, 0)]
    while left:
        inner, depth = left.pop()
        if depth > DEEPEST:
            return True
        if isinstance(inner, dict):
            left += [(item, depth + 1) for item in inner.values()]
        elif isinstance(inner, list):
            left += [(item, depth + 1) for item in inner]
    return False


def _converted(schema: Mapping[str, Any], value: Any, data_types: Mapping[str, Any]) -> Any:
    """A value as a schema wants it, as far as that is possible; the checks of the template follow."""
    kind = str(schema.get("type"))
    inner: Any = schema
    for _level in range(DEEPEST):  # a data type may be an integer with limits
        if kind in values.SIMPLE or not isinstance(data_types.get(kind), dict):
            break
        inner = data_types[kind]
        kind = str(inner.get("type") or inner.get("derived_from"))
    named = str(schema.get("type"))
    if isinstance(value, str):
        if kind in _SIMPLE:
            return _simple(kind, value)
        if kind in values.SIMPLE and kind not in ("list", "map", "range"):
            return value
        value = _structure(value)
    if isinstance(value, list):
        entry = values.entries(schema.get("entry_schema"))
        return [_converted(entry, item, data_types) for item in value] if entry else value
    if isinstance(value, dict):
        if kind in ("map", "list"):
            entry = values.entries(schema.get("entry_schema"))
            if not entry:
                return value
            return {key: _converted(entry, item, data_types) for key, item in value.items()}
        fields = _fields(named, data_types)
        return {
            key: _converted(fields[key], item, data_types) if key in fields else item
            for key, item in value.items()
            # an empty field of a form, unless a text is wanted
            if item != "" or fields.get(key, {}).get("type") == "string"
        }
    return value


def _fields(kind: str, data_types: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a data type and of its ancestors."""
    found: dict[str, Any] = {}
    for _level in range(DEEPEST):
        definition = data_types.get(kind)
        if not isinstance(definition, dict):
            break
        own = definition.get("properties")
        found = {**(own if isinstance(own, dict) else {}), **found}
        kind = str(definition.get("derived_from"))
    return {name: schema for name, schema in found.items() if isinstance(schema, dict)}


def _simple(kind: str, text: str) -> Any:
    plain = text.strip()
    if kind == "boolean":
        if plain.lower() not in ("true", "false"):
            raise ValueError(f'"{plain[:100]}" is no boolean; write true or false')
        return plain.lower() == "true"
    try:
        if len(plain) > 40:
            raise ValueError(plain)
        if kind != "float" and plain.lstrip("+-").isdecimal():
            return int(plain)
        number = float(plain)
        whole = kind != "float" and number.is_integer() and abs(number) < 2**53
    except (ValueError, OverflowError) as error:
        raise ValueError(f'"{plain[:100]}" is no {kind}') from error
    return int(number) if whole else number


def _yaml(text: str) -> Any:
    try:
        return document.value(text)
    except BadTemplate:
        return None


def _structure(text: str) -> Any:
    """A list or a map that was written as JSON, as Python writes it, or as YAML."""
    if len(text) > LONGEST:
        raise ValueError(f"the text is longer than {LONGEST} letters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found = _yaml(text)
    if too_deep(found):
        raise ValueError(f"the value has more than {DEEPEST} levels")
    try:
        plain = json.loads(json.dumps(found, allow_nan=False)) == found
    except (TypeError, ValueError, RecursionError):
        plain = False
    if not plain:  # tuples, sets and bytes would pass checks that know lists, maps and texts
        raise ValueError("the text has values that JSON does not have; write JSON")
    if not isinstance(found, list | dict):
        raise ValueError(f'"{text[:100]}" is neither a list nor a map; write JSON')
    return found
