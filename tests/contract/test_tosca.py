"""The properties of a node type are the variables of its role: same names, same defaults, same kinds."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TYPES = ROOT / "tosca" / "types"
TOSCA_KIND = {
    "str": "string",
    "bool": "boolean",
    "int": "integer",
    "float": "float",
    "list": "list",
    "dict": "map",
}


@cache
def node_types() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(TYPES.glob("*.yaml")):
        found |= yaml.safe_load(path.read_text()).get("node_types", {})
    return found


def ancestry(name: str) -> list[dict[str, Any]]:
    """The type and its ancestors within this library, nearest first."""
    types = node_types()
    line = []
    while name in types:
        line.append(types[name])
        name = types[name]["derived_from"]
    return line


def properties(name: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for definition in reversed(ancestry(name)):
        merged |= definition.get("properties", {})
    return merged


def role_of(name: str) -> str | None:
    for definition in ancestry(name):
        role = definition.get("metadata", {}).get("role")
        if role:
            return str(role)
    return None


# leaf types only: those that carry interfaces
WRAPPERS = sorted(name for name, body in node_types().items() if role_of(name) and body.get("interfaces"))


@cache
def specs(role: str) -> dict[str, Any]:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    options = yaml.safe_load(path.read_text())["argument_specs"]["main"]["options"]
    return {name: option for name, option in options.items() if name != f"{role}_state"}


def test_every_role_has_a_node_type() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir() if not path.name.startswith("_")}
    assert {str(role_of(name)).removeprefix("gpufarm.cluster.") for name in WRAPPERS} == roles


@pytest.mark.parametrize("name", WRAPPERS)
def test_properties_are_the_variables_of_the_role(name: str) -> None:
    role = str(role_of(name)).removeprefix("gpufarm.cluster.")
    assert set(properties(name)) == set(specs(role))


@pytest.mark.parametrize("name", WRAPPERS)
def test_defaults_and_kinds_agree(name: str) -> None:
    role = str(role_of(name)).removeprefix("gpufarm.cluster.")
    for variable, option in specs(role).items():
        definition = properties(name)[variable]
        assert definition["type"] == TOSCA_KIND[option.get("type", "str")], variable
        if "default" not in definition:
            # what the role refuses when it is empty (though not for `absent`), the type requires
            assert definition.get("required", True) and option.get("default", "") == "", variable
        else:
            assert definition.get("default") == option["default"], variable


@pytest.mark.parametrize("name", WRAPPERS)
def test_operations_exist_and_everything_is_described(name: str) -> None:
    operations = node_types()[name]["interfaces"]["Standard"]["operations"]
    assert {"configure", "delete"} <= set(operations)
    for operation in operations.values():
        assert (TYPES / operation["implementation"]).is_file()
    for definition in ancestry(name):
        assert definition.get("description")
    for variable, definition in properties(name).items():
        assert definition.get("description"), variable


def groups_by_role() -> dict[str, set[str]]:
    """The groups of machines on which the playbooks set up each role."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        for play in yaml.safe_load(path.read_text()):
            for entry in play.get("roles", []):
                found.setdefault(entry["role"], set()).update(re.split("[:!&]+", play["hosts"]))
    return found


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_template_as_inventory_reaches_the_playbook_of_each_role(name: str) -> None:
    named = {body["metadata"].get("inventory_group") for body in ancestry(name) if "metadata" in body}
    groups = groups_by_role().get(str(role_of(name)))
    assert named <= groups if groups else named == {None}
