"""The properties of a node type are the variables of its role: same names, same defaults, same kinds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufarm.values import fault

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
def types(section: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(TYPES.glob("*.yaml")):
        found |= yaml.safe_load(path.read_text()).get(section, {})
    return found


def node_types() -> dict[str, dict[str, Any]]:
    return types("node_types")


def ancestry(name: str) -> list[dict[str, Any]]:
    """The type and its ancestors within this library, nearest first."""
    line = []
    while name in node_types():
        line.append(node_types()[name])
        name = node_types()[name]["derived_from"]
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


def assert_entries_agree(definition: dict[str, Any], option: dict[str, Any], name: str) -> None:
    """Lists and their entries are the same for the type and for the role."""
    kind = definition.get("entry_schema", {}).get("type")
    if "elements" in option and "options" not in option:
        assert kind == TOSCA_KIND[option["elements"]], name
    if "options" in option:
        fields = types("data_types")[kind]["properties"]
        assert set(fields) == set(option["options"]), name
        for field, inner in option["options"].items():
            assert fields[field]["type"] == TOSCA_KIND[inner["type"]], (name, field)
            assert fields[field].get("required", True) == inner.get("required", False), (name, field)
            assert fields[field].get("default") == inner.get("default"), (name, field)
            assert_entries_agree(fields[field], inner, f"{name}.{field}")


@pytest.mark.parametrize("name", WRAPPERS)
def test_entries_of_lists_agree(name: str) -> None:
    for variable, option in specs(str(role_of(name)).removeprefix("gpufarm.cluster.")).items():
        assert_entries_agree(properties(name)[variable], option, variable)


def documents() -> Iterator[Any]:
    """Where roles are run and where their READMEs tell how, but not where tests see them refuse something."""
    for folder in ("molecule", "inventories"):
        for path in (ROOT / folder).rglob("*.yml"):
            if "refus" not in path.name and path.name != "hosts.yml":
                yield yaml.load(path.read_text(), YAML)
    for path in (ROOT / "roles").glob("*/README.md"):
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL):
            yield yaml.load(block, YAML)


class YAML(yaml.SafeLoader):
    """As Ansible reads it, with its own tags."""


YAML.add_multi_constructor("!", lambda _loader, _tag, _node: None)


def named(value: Any) -> Iterator[tuple[str, Any]]:
    """Every name with its value, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from named(inner)


@cache
def used() -> dict[str, list[Any]]:
    """The values that are given to variables without an expression, as Ansible takes them."""
    found = defaultdict(list)
    for name, value in named(list(documents())):
        if value is not None and "{{" not in str(value):
            found[name].append(value)
    return found


def taken(option: dict[str, Any], value: Any) -> Any:
    """A value as a template would give it: names are text, and words may be in a list for roles alone."""
    if option.get("elements") == "str":
        return [str(entry) for entry in value]
    return " ".join(value) if option.get("type") == "str" and isinstance(value, list) else value


@pytest.mark.parametrize("name", WRAPPERS)
def test_what_a_role_is_given_fits_its_type(name: str) -> None:
    for variable, option in specs(str(role_of(name)).removeprefix("gpufarm.cluster.")).items():
        for value in used()[variable]:
            wrong = fault(properties(name)[variable], taken(option, value), types("data_types"))
            assert not wrong, f"{variable}: {wrong}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tosca" / "templates").glob("*.yaml")), ids=lambda path: path.stem
)
def test_properties_take_what_the_inputs_of_a_template_take(path: Path) -> None:
    topology = yaml.safe_load(path.read_text())["topology_template"]
    for node in topology["node_templates"].values():
        for name, value in node.get("properties", {}).items():
            if isinstance(value, dict) and "get_input" in value:
                given, definition = topology["inputs"][value["get_input"]], properties(node["type"])[name]
                entries = definition.get("entry_schema")
                assert given["type"] == definition["type"], name
                assert entries is None or given.get("entry_schema") == entries, name


@pytest.mark.parametrize("name", WRAPPERS)
def test_operations_exist_and_everything_is_described(name: str) -> None:
    operations = node_types()[name]["interfaces"]["Standard"]["operations"]
    assert {"configure", "delete"} <= set(operations)
    playbook = types("artifact_types")["tosca.artifacts.gpufarm.AnsiblePlaybook"]
    for operation in operations.values():
        path = TYPES / operation["implementation"]
        # orchestrators tell by the ending what kind of implementation it is
        assert path.is_file() and path.suffix.removeprefix(".") in playbook["file_ext"]
    for definition in ancestry(name):
        assert definition.get("description")
    for variable, definition in properties(name).items():
        assert definition.get("description"), variable


def groups_by_role() -> dict[str, set[str]]:
    """The groups of machines on which the playbooks set up each role."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        for play in yaml.safe_load(path.read_text()):
            names = [entry["role"] for entry in play.get("roles", [])]
            tasks = [task.get("ansible.builtin.include_role", {}) for task in play.get("tasks", [])]
            names += [task["name"] for task in tasks if {*task} == {"name"}]
            for role in names:
                # of a group such as name[0] the members do not matter here
                groups = {one.partition("[")[0] for one in re.split("[:!&]+", play["hosts"])}
                found.setdefault(role, set()).update(groups)
    return found


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_template_as_inventory_reaches_the_playbook_of_each_role(name: str) -> None:
    named = {body["metadata"].get("inventory_group") for body in ancestry(name) if "metadata" in body}
    groups = groups_by_role().get(str(role_of(name)))
    assert named <= groups if groups else named == {None}
