# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells what in a value is a secret, and hides it. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gpufarm.topology import is_secret

HIDDEN = "(secret)"
# A shorter text would mask half of a log, and protects nothing.
LEAST = 4


def _hidden(value: Mapping[Any, Any]) -> set[Any]:
    """The keys of a map whose entries are secrets by their names, or by that in ``{key: name, value: x}``."""
    name = value.get("key") if value.keys() == {"key", "value"} else None
    named = {"value"} if isinstance(name, str) and is_secret(name) else set()
    return named | {key for key in value if is_secret(str(key))}


def parts(value: Any) -> Iterator[Any]:
    """Find what is a secret by the name of its entry.

    Args:
        value: a map, or a list with maps in it.

    Yields:
        The value of each such entry at any depth.
    """
    if isinstance(value, dict):
        hidden = _hidden(value)
        for key, item in value.items():
            yield from (item,) if key in hidden else parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from parts(item)


def holds_secret(value: Any) -> bool:
    """Tell whether a map somewhere in a value has an entry that is a secret by its name.

    Args:
        value: of an input or a property.

    Returns:
        True for ``[{registry: x, password: y}]``.
    """
    return any(item not in (None, "") for item in parts(value))


def veiled(value: Any) -> Any:
    """Hide the secrets that maps in a value hold.

    Args:
        value: of an input or a property.

    Returns:
        A copy with those values replaced.
    """
    if isinstance(value, dict):
        hidden = _hidden(value)
        return {
            key: HIDDEN if key in hidden and item not in (None, "") else veiled(item)
            for key, item in value.items()
        }
    return [veiled(item) for item in value] if isinstance(value, list) else value


def separated(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take what is secret out of a map.

    Args:
        values: what an operation has returned.

    Returns:
        The public values, and the secret ones: those named as a secret or holding one.
    """
    hidden = {
        name: value
        for name, value in values.items()
        if (is_secret(name) and value not in (None, "")) or holds_secret(value)
    }
    return {name: value for name, value in values.items() if name not in hidden}, hidden


def refers(expression: Any) -> bool:
    """Tell whether an expression names an attribute or a property that is a secret by its name.

    Args:
        expression: a value that may contain functions at any depth.

    Returns:
        True for ``{get_attribute: [hub, admin_password]}``.
    """
    if isinstance(expression, list):
        return any(map(refers, expression))
    if not isinstance(expression, dict):
        return False
    paths = (expression.get(function) for function in ("get_attribute", "get_property"))
    named = any(isinstance(path, list) and any(is_secret(str(part)) for part in path[1:]) for path in paths)
    return named or any(map(refers, expression.values()))


def _texts(value: Any, *, whole: bool) -> Iterator[str]:
    """The texts in a value: all of them, or those that are secrets by the name of their entry."""
    if isinstance(value, dict):
        hidden = _hidden(value)
        for key, item in value.items():
            yield from _texts(item, whole=whole or key in hidden)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, whole=whole)
    elif whole and value is not None and not isinstance(value, bool):
        yield str(value)


def forms(value: Any, *, whole: bool) -> Collection[str]:
    """List the texts that must not be seen anywhere.

    Args:
        value: of a variable.
        whole: whether all of it is secret, or only what it holds under such names.

    Returns:
        Each secret as it is, as it looks inside JSON and YAML, and line by line: Ansible indents long texts.
    """
    found = set()
    for text in _texts(value, whole=whole):
        lines = [line.strip() for line in text.splitlines()] if "\n" in text else []
        for part in (text, *lines):
            found |= {part, json.dumps(part)[1:-1], part.replace("'", "''")}
    return {form for form in found if len(form) >= LEAST}
