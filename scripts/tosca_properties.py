"""Properties of TOSCA types: what follows from argument specs of roles, and what only a type says."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Mapping
from typing import Any

from described import ROOT, Plain, options, roles, text

COLLECTION = "gpufarm.cluster."
# TOSCA Simple Profile 1.3, section 3.3; Ansible's types of options.
KINDS = {
    "bool": "boolean",
    "dict": "map",
    "float": "float",
    "int": "integer",
    "list": "list",
    "path": "string",
    "str": "string",
}


def leaf_name(name: str) -> str:
    """Return the name of the type that templates use."""
    return name.replace(".base.", ".")


def properties(name: str, types: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the properties of a type with those that it inherits in this library."""
    definition = types.get(name, {})
    inherited = properties(definition["derived_from"], types) if definition else {}
    return {**inherited, **definition.get("properties", {})}


def completed(source: dict[str, Any]) -> dict[str, Any]:
    """Return the types with the properties that follow from roles.

    A node type with a role has the variables of the role but the one for its state. A data type with an
    `option` has what each entry of that option has. Facts of the source about a property are added, and win.
    Its facts about plays are for `tosca_playbooks`. A pattern may be `{from: FILE, name: NAME}`, the constant
    of a Python file.

    Args:
        source: the document tosca/source/types.yaml.

    Raises:
        ValueError: the source names a property that does not follow, says what follows anyway, or names an
            option that no role has.
    """
    found: dict[str, Any] = _with_patterns(copy.deepcopy(source))
    for definition in found["node_types"].values():
        definition.pop("play", None)
        for attribute in definition.get("attributes", {}).values():
            attribute.pop("from", None)
    for name, definition in found["data_types"].items():
        fields = _option(definition.pop("option"), name)["options"]
        derived = {key: _field(option) for key, option in fields.items()}
        definition["properties"] = _merged(derived, definition.get("properties", {}), name)
    for name, definition in found["node_types"].items():
        role = str(definition.get("metadata", {}).get("role", "")).removeprefix(COLLECTION)
        if role:
            variables = {key: one for key, one in options(role).items() if key != f"{role}_state"}
            derived = {key: _property(option) for key, option in variables.items()}
            definition["properties"] = _merged(derived, definition.get("properties", {}), name)
    return found


def _with_patterns(value: Any) -> Any:
    """The same with the patterns that programs have."""
    if isinstance(value, list):
        return [_with_patterns(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    pattern = value.get("pattern")
    if isinstance(pattern, dict) and pattern.keys() == {"from", "name"}:
        return {"pattern": _constant(pattern["from"], pattern["name"])}
    return {key: _with_patterns(entry) for key, entry in value.items()}


def _constant(path: str, name: str) -> Any:
    """A constant of a Python file, which is imported with its packages as it may import beside itself."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name)


def _option(variable: str, data_type: str) -> dict[str, Any]:
    for role in roles():
        if variable in options(role):
            return options(role)[variable]
    raise ValueError(f"{data_type}: no role has the variable {variable}")


def _property(option: dict[str, Any]) -> dict[str, Any]:
    kind = option.get("type", "str")
    found: dict[str, Any] = {"type": KINDS[kind], "description": text(option["description"], Plain())}
    choices = {"constraints": [{"valid_values": option["choices"]}]} if "choices" in option else {}
    if "elements" in option and "options" not in option:
        found["entry_schema"] = {"type": KINDS[option["elements"]], **choices}
    else:
        found |= choices
    return found | ({"default": option["default"]} if "default" in option else {})


def _field(option: dict[str, Any]) -> dict[str, Any]:
    found = _property(option)
    return found if option.get("required") else {**found, "required": False}


def _merged(derived: dict[str, Any], said: dict[str, Any], name: str) -> dict[str, Any]:
    unknown = said.keys() - derived.keys()
    if unknown:
        raise ValueError(f"{name}: {', '.join(sorted(unknown))} follows from no option of its role")
    for key, addition in said.items():
        again = [word for word, value in addition.items() if derived[key].get(word) == value]
        if again:
            raise ValueError(f"{name}.{key}: {', '.join(again)} follows from the role")
    return {key: {**definition, **said.get(key, {})} for key, definition in derived.items()}
