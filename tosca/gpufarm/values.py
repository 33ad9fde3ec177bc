# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks a value by a schema: types and constraints of TOSCA Simple Profile 1.3, sections 3.3 and 3.6.3."""

from __future__ import annotations

import datetime
import math
import re
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

# TOSCA Simple Profile 1.3, sections 3.3.6.4 to 3.3.6.7: each unit in the smallest one, names in small letters
UNITS: dict[str, dict[str, float]] = {
    "scalar-unit.size": {
        "b": 1,
        **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", start=1)},
        **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", start=1)},
    },
    "scalar-unit.time": {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "scalar-unit.frequency": {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
}
# Seconds of the processor for a pattern, as a busy machine must refuse none; those that are meant well take
# microseconds.
PATIENCE = 2.0
_SCALAR = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}(\.[A-Za-z0-9_]+(-[0-9]+)?)?")
SIMPLE = (
    *("string", "integer", "float", "number", "boolean", "list", "map", "range", "timestamp", "version"),
    *UNITS,
)
_FUNCTIONS = frozenset(
    {
        *("get_input", "get_property", "get_attribute", "concat", "token", "join"),
        *("get_operation_output", "get_nodes_of_type", "get_artifact"),
    }
)


def function(value: Any) -> str | None:
    """Tell whether a value is a function.

    Args:
        value: as written.

    Returns:
        The name of the function; None for any other value.
    """
    if isinstance(value, dict) and len(value) == 1:
        (name,) = value
        return name if isinstance(name, str) and name in _FUNCTIONS else None
    return None


def computed(value: Any) -> bool:
    """Tell whether there is a function somewhere in a value.

    Args:
        value: as written.

    Returns:
        True if there is.
    """
    if isinstance(value, dict):
        return function(value) is not None or any(map(computed, value.values()))
    return isinstance(value, list) and any(map(computed, value))


def in_units(kind: str, value: Any) -> float:
    """Convert a size, a time or a frequency.

    Args:
        kind: ``scalar-unit.size``, ``scalar-unit.time`` or ``scalar-unit.frequency``.
        value: such as "4 GB".

    Returns:
        The number of bytes, seconds or hertz.

    Raises:
        ValueError: it is none.
    """
    found = _SCALAR.fullmatch(str(value).strip())
    factor = UNITS[kind].get(found.group(2).lower()) if found else None
    amount = float(found.group(1)) * factor if found and factor else math.inf
    if math.isinf(amount):
        raise ValueError(_short(value))
    return amount


def _is_timestamp(value: Any) -> bool:
    try:
        return bool(datetime.datetime.fromisoformat(str(value)))
    except ValueError:
        return False


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(_whole(item) or item == "UNBOUNDED" for item in value)
        and (not _whole(value[0]) or not _whole(value[1]) or value[0] <= value[1])
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _whole,
    "float": _number,
    "number": _number,
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
    "range": _is_range,
    "timestamp": _is_timestamp,
    "version": lambda value: (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and bool(_VERSION.fullmatch(str(value)))
    ),
}
_COMPARE: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "equal": ("has to be", lambda value, limit: value == limit),
    "greater_than": ("has to be more than", lambda value, limit: value > limit),
    "greater_or_equal": ("has to be at least", lambda value, limit: value >= limit),
    "less_than": ("has to be less than", lambda value, limit: value < limit),
    "less_or_equal": ("may be at most", lambda value, limit: value <= limit),
}
_LENGTH: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    "length": ("needs a length of", lambda length, limit: length == limit),
    "min_length": ("needs a length of at least", lambda length, limit: length >= limit),
    "max_length": ("may have a length of at most", lambda length, limit: length <= limit),
}
CONSTRAINTS = (*_COMPARE, *_LENGTH, "in_range", "valid_values", "pattern")


class BadSchema(ValueError):
    """The schema itself is wrong; the message says why."""


def entries(schema: Any) -> dict[str, Any]:
    """Read an ``entry_schema``, which may be the name of a type.

    Args:
        schema: as written.

    Returns:
        A schema; an empty one if there is none.
    """
    return {"type": schema} if isinstance(schema, str) else schema if isinstance(schema, dict) else {}


def unfit(value: Any) -> str:
    """Find out what no given value may have in it, whatever its type.

    Args:
        value: the value.

    Returns:
        A phrase such as ``contains a NUL character``; empty if there is nothing.
    """
    if isinstance(value, str):
        if "\0" in value:
            return "contains a NUL character; remove it"
        return "" if value.isascii() or _encodes(value) else "is no text in UTF-8; write it in UTF-8"
    if isinstance(value, int | float) and not isinstance(value, bool) and not _number(value):
        return f"{_shown(value)} is too large a number, or none; write a smaller one"
    if isinstance(value, dict):
        named = function(value)
        if named and (named == "concat" or named.startswith("get_")):
            return f"contains the function {named}, which works in templates only; write what it comes to"
        other = next((key for key in value if not isinstance(key, str)), None)
        if other is not None or None in value:
            return f"{_shown(other)} is no key of a map; write it in quotes"
        return next(filter(None, map(unfit, (*value, *value.values()))), "")
    return next(filter(None, map(unfit, value)), "") if isinstance(value, list) else ""


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def fault(
    schema: Mapping[str, Any],
    value: Any,
    data_types: Mapping[str, Any],
    depth: int = 0,
    *,
    plain: bool = False,
) -> str:
    """Find out what is wrong with a value. Functions inside of it are taken for right, unless it is plain.

    Args:
        schema: ``type``, and perhaps ``entry_schema`` and ``constraints``.
        value: the value.
        data_types: definitions of the data types that ``type`` may name.
        depth: how many types led here.
        plain: whether it is what a function came to or what a user gave, so that a function is a mistake.

    Returns:
        A phrase such as ``"seven" is no integer``; empty if the value is right.

    Raises:
        BadSchema: the schema is wrong.
    """
    if function(value) and not plain:
        return ""
    if depth > 20:
        raise BadSchema("data types contain each other in a circle")
    kind = schema.get("type")
    if isinstance(kind, str) and kind in UNITS:
        try:
            in_units(kind, value)
        except ValueError:
            units = ", ".join(sorted(UNITS[kind], key=lambda unit: UNITS[kind][unit]))
            return f"{_shown(value)} is no {kind.partition('.')[2]}; write a number and a unit ({units})"
    elif isinstance(kind, str) and kind in _IS:
        if not _IS[kind](value):
            quotes = "; write it in quotes" if kind == "string" else ""
            return f"{_shown(value)} is no {kind}{quotes}"
    elif isinstance(kind, str) and isinstance(data_types.get(kind), dict):
        return _structure_fault(kind, value, data_types, depth, plain=plain) or _constraint_fault(
            schema, value
        )
    else:
        raise BadSchema(f"{kind} is no type of a value")
    if isinstance(value, list | dict) and schema.get("entry_schema"):
        inner = entries(schema["entry_schema"])
        for key, item in value.items() if isinstance(value, dict) else enumerate(value, start=1):
            wrong = fault(inner, item, data_types, depth + 1, plain=plain)
            if wrong:
                return f"entry {_short(key)}: {wrong}"
    return _constraint_fault(schema, value)


def _structure_fault(kind: str, value: Any, data_types: Mapping[str, Any], depth: int, *, plain: bool) -> str:
    """Problems of a value of a data type: a simple one with limits, or a mapping of properties."""
    properties: dict[str, Any] = {}
    chain: list[Mapping[str, Any]] = []
    name: Any = kind
    while isinstance(name, str) and isinstance(data_types.get(name), dict) and len(chain) < 50:
        chain.append(data_types[name])
        # tosca-parser defines PortDef with `type: integer` beside `derived_from`
        name = data_types[name].get("type") or data_types[name].get("derived_from")
    if name in SIMPLE:
        for definition in chain:
            wrong = fault({**definition, "type": name}, value, data_types, depth + 1, plain=plain)
            if wrong:
                return wrong
        return ""
    for definition in reversed(chain):
        properties |= definition.get("properties") or {}
    if not isinstance(value, dict):
        return f"{_shown(value)} is no {kind}; it has the fields {', '.join(properties)}"
    for key, item in value.items():
        if not isinstance(properties.get(key), dict):
            return f"{kind} has no field {_short(key)}; it has {', '.join(properties) or 'none'}"
        wrong = fault(properties[key], item, data_types, depth + 1, plain=plain)
        if wrong:
            return f"field {key}: {wrong}"
    for key, schema in properties.items():
        needed = isinstance(schema, dict) and schema.get("required", True) and "default" not in schema
        if needed and key not in value:
            return f"the field {key} of {kind} is missing"
    return ""


def _constraint_fault(schema: Mapping[str, Any], value: Any) -> str:
    constraints = schema.get("constraints") or []
    if not isinstance(constraints, list):
        raise BadSchema("constraints have to be a list")
    for constraint in constraints:
        if not isinstance(constraint, dict) or len(constraint) != 1:
            raise BadSchema("a constraint has to be one name with one value")
        ((name, limit),) = constraint.items()
        if name not in CONSTRAINTS:
            raise BadSchema(f"{name} is no constraint; there are {', '.join(CONSTRAINTS)}")
        try:
            wrong = _violation(str(schema.get("type")), name, limit, value)
        except (TypeError, ValueError, re.error) as error:
            if "takes too long" in str(error):
                return f"{_shown(value)} cannot be checked: {error}"
            raise BadSchema(f"constraint {name}: {_shown(limit)} does not fit the type") from error
        if wrong:
            return f"{_shown(value)} {wrong}"
    return ""


def _violation(kind: str, name: str, limit: Any, value: Any) -> str:
    """Violation of a constraint by a value, as the end of a sentence; empty if none."""

    def plain(item: Any) -> Any:
        return in_units(kind, item) if kind in UNITS else item

    if name in _COMPARE:
        words, holds = _COMPARE[name]
        return "" if holds(plain(value), plain(limit)) else f"{words} {limit}"
    if name in _LENGTH:
        words, fits = _LENGTH[name]
        return "" if fits(len(value), limit) else f"{words} {limit}"
    if name == "in_range":
        low, high = limit
        # Of a range, as PortSpec has one, both ends must be in it.
        ends = [end for end in value if end != "UNBOUNDED"] if kind == "range" else [value]
        below = low != "UNBOUNDED" and any(plain(end) < plain(low) for end in ends)
        above = high != "UNBOUNDED" and any(plain(end) > plain(high) for end in ends)
        return f"is out of range: {low} to {high}" if below or above else ""
    if name == "valid_values":
        if not isinstance(limit, list):
            raise ValueError(limit)
        allowed = any(value == item and isinstance(value, bool) == isinstance(item, bool) for item in limit)
        if allowed or (kind in UNITS and plain(value) in map(plain, limit)):
            return ""
        return f"is not one of {', '.join(map(str, limit))}"
    return "" if _matches(limit, value) else f"does not match the pattern {limit}"


def _matches(pattern: str, value: str) -> bool:
    """Whether a pattern fits. Some take years over some values, and either may come from a stranger."""

    def give_up(_number: int, _frame: Any) -> None:
        raise ValueError(f"the pattern {pattern} takes too long")

    if threading.current_thread() is not threading.main_thread():
        return bool(re.fullmatch(pattern, value))
    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        return bool(re.fullmatch(pattern, value))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        text = "an endless number"
    return f"{text[:100]}..." if len(text) > 100 else text


def _shown(value: Any) -> str:
    return f'"{_short(value)}"'
