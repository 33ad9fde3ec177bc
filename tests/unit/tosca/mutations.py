"""Templates and inputs that are changed at random, by their structure; a seed gives the same ones again."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from deployer_site import DATA

ROOT = Path(__file__).resolve().parents[3]
PLAIN = """
tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  inputs:
    cpus: {type: integer, default: 2, constraints: [{in_range: [1, 8]}]}
    size: {type: scalar-unit.size, default: 2 GB}
    names: {type: list, entry_schema: {type: string}, default: [a, b]}
    labels: {type: map, entry_schema: {type: string}, default: {a: b}}
  node_templates:
    server:
      type: tosca.nodes.Compute
      capabilities:
        host: {properties: {num_cpus: {get_input: cpus}, mem_size: {get_input: size}}}
        os: {properties: {type: linux, architecture: x86_64, distribution: debian, version: 12}}
        scalable: {properties: {min_instances: 1, max_instances: 2, default_instances: 1}}
    software:
      type: tosca.nodes.SoftwareComponent
      requirements: [{host: server}]
  outputs:
    address: {value: {get_attribute: [server, private_address]}}
    words: {value: {concat: [{get_input: cpus}, " CPUs"]}}
"""
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**200, 10**4200),
    *(1.5, -0.0, float("nan"), float("inf")),
    *("", " ", "a", "0", "1", "yes", "null", "1e9", "0x10", "a" * 100_000),
    *("\0", "\u2028", "\x1b[31m", "ä", "=", "<<", "[", "~", ".", ".."),
    *("{{ 1 }}", "{% x %}", "#jinja2: a\n{{ 1 }}", "$(id)", "../../etc/passwd", "/etc/passwd", "a/b"),
    *("4 GB", "-4 GB", "9" * 400 + " GB", "0 GB", "1 m", "UNBOUNDED", "https://x/", "2024-01-01", "SELF"),
    *([], {}, [None], [[]], [{}], [1, "a", {}], ["a"] * 1000, "HOST"),
    *({"": ""}, {"a": None}, {1: 2}, {None: 1}, {True: []}, {"a": {"b": {"c": {"d": {}}}}}),
)
WORDS = (
    *("type", "properties", "requirements", "capabilities", "interfaces", "Standard", "operations", "host"),
    *("inputs", "outputs", "value", "node", "relationship", "capability", "constraints", "entry_schema"),
    *("implementation", "primary", "dependencies", "metadata", "imports", "node_types", "data_types"),
    *("artifacts", "file", "derived_from", "targets", "scalable", "num_cpus", "tosca.nodes.Compute", "copy"),
    *("tosca.nodes.Root", "tosca.nodes.SoftwareComponent", "string", "integer", "list", "map", "configure"),
    *("default", "required", "policies", "groups", "delete"),
)
# A value for each required input that has to have a certain form.
GIVEN: dict[str, Any] = {
    **{
        "iam_url": "https://iam.example.org/",
        "marathon_urls": ["https://m1:8443"],
        "app_name": "a",
        "owner": "ada",
    },
    **{"jupyter_password": "a long password of mine"},
    **{"users": [{"os_user_name": "ada", "os_user_ssh_public_key": "ssh-ed25519 AAAA"}]},
    **{"chronos_urls": ["https://c1:8444"], "job_name": "job", "schedule": "R/2030-01-01T00:00:00Z/PT1H"},
}


@dataclass(frozen=True)
class Case:
    """A template and values for its inputs.

    Attributes:
        name: what it was made from.
        template: its content.
        inputs: values by name.
    """

    name: str
    template: dict[str, Any]
    inputs: dict[str, Any]

    def texts(self) -> tuple[str, str]:
        """Template and inputs as YAML, without aliases."""
        return tuple(  # type: ignore[return-value]
            yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
            for content in (self.template, self.inputs)
        )


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _sources() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "plain", yaml.safe_load(PLAIN)
    for name in ("service", "farm", "app"):
        text = (DATA / f"{name}.yaml").read_text()
        text = text.replace("- types.yaml", f"- {DATA}/types.yaml").replace("../", f"{ROOT}/tosca/")
        yield name, yaml.safe_load(text.replace(" playbooks/", f" {DATA}/playbooks/"))
    for path in sorted((ROOT / "tosca" / "templates").glob("*.yaml")):
        yield path.stem, yaml.safe_load(path.read_text().replace("../types/", f"{ROOT}/tosca/types/"))
    for path in sorted((DATA / "indigo").glob("*.yaml")):
        text = path.read_text().replace("distribution: ubuntu", "distribution: debian").replace("22.04", "12")
        yield f"indigo-{path.stem}", yaml.safe_load(text)


SOURCES = dict(_sources())


def _plausible(name: str, schema: dict[str, Any]) -> Any:
    """A value for an input that needs one."""
    if name in GIVEN:
        return GIVEN[name]
    kinds = {"integer": 1, "float": 1.0, "boolean": True, "list": ["a"], "map": {"a": "b"}}
    return kinds.get(str(schema.get("type")), "a")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of every map and list in a value, as what it is in and its key."""
    count = range(len(value)) if isinstance(value, list) else ()
    for key in list(value) if isinstance(value, dict) else count:
        yield value, key
        yield from _places(value[key])


def _function(rng: random.Random, template: dict[str, Any]) -> Any:
    """A function of TOSCA that names something of the template, or nearly."""
    topology = template.get("topology_template")
    topology = topology if isinstance(topology, dict) else {}
    parts = {key: value if isinstance(value, dict) else {} for key, value in topology.items()}
    node = rng.choice([*map(str, parts.get("node_templates", {})), "SELF", "HOST", "nobody"])
    own = parts.get("node_templates", {}).get(node)
    names = own.get("properties") if isinstance(own, dict) else None
    names = names if isinstance(names, dict) else None
    name = rng.choice([*map(str, names or ()), "host", "public_address", "nothing"])
    given = rng.choice([*map(str, parts.get("inputs", {})), "nothing"])
    kinds: list[Any] = [
        {"get_input": given},
        {"get_input": [given]},
        {"get_input": {}},
        {"get_property": [node, name]},
        {"get_property": [node, name, rng.choice(["a", 0, "num_cpus"])]},
        {"get_attribute": [node, name]},
        {"get_artifact": [node, name]},
        {"get_operation_output": [node, "Standard", "configure", name]},
        {"concat": [{"get_input": given}, "a"]},
        {"concat": [{"concat": []}]},
        {"concat": []},
        {"concat": given},
        {"token": ["a", "b", 0]},
    ]
    return rng.choice(kinds)


def _changed(rng: random.Random, content: Any, template: dict[str, Any]) -> None:
    """Change one thing in a template or in inputs."""
    places = list(_places(content))
    if not places:
        return
    inside, key = rng.choice(places)
    kind = rng.choice(("replace", "replace", "function", "remove", "rename", "copy", "swap", "wrap", "add"))
    if kind == "replace":
        inside[key] = copy.deepcopy(rng.choice(ODD))
    elif kind == "function":
        inside[key] = _function(rng, template)
    elif kind == "remove":
        del inside[key]
    elif kind == "rename" and isinstance(inside, dict):
        value = inside.pop(key)
        odd = (f"{key}s", str(key)[1:], "a" * 100_000, "{{ 1 }}", "ansible_connection", "")
        inside[rng.choice((*WORDS, *odd))] = value
    elif kind == "copy":
        other, name = rng.choice(places)
        inside[key] = copy.deepcopy(other[name]) if name in other or isinstance(other, list) else None
    elif kind == "swap":
        other, name = rng.choice(places)
        first, second = copy.deepcopy(inside[key]), copy.deepcopy(other[name])
        inside[key], other[name] = second, first
    elif kind == "wrap":
        inside[key] = rng.choice([[inside[key]], {rng.choice(WORDS): inside[key]}])
    elif isinstance(inside, dict):
        inside[rng.choice(WORDS)] = copy.deepcopy(rng.choice(ODD))
    else:
        inside.append(copy.deepcopy(rng.choice(ODD)))


def original(name: str) -> Case:
    """Give a case as it is before anything is changed.

    Args:
        name: of a template in `SOURCES`.

    Returns:
        The template, and values for the inputs that need one.
    """
    template = copy.deepcopy(SOURCES[name])
    definitions = template["topology_template"].get("inputs", {})
    needed = {key: schema for key, schema in definitions.items() if "default" not in schema}
    return Case(name, template, {key: _plausible(key, schema) for key, schema in needed.items()})


def case(seed: int, number: int) -> Case:
    """Make a case.

    Args:
        seed: of all cases.
        number: of this one.

    Returns:
        A template and inputs, of which one or several things were changed.
    """
    rng = random.Random(f"{seed}/{number}")
    found = original(rng.choice(sorted(SOURCES)))
    definitions = found.template["topology_template"].get("inputs", {})
    defaults = {key: schema["default"] for key, schema in definitions.items() if "default" in schema}
    for key in rng.sample(sorted(defaults), min(len(defaults), rng.choice((0, 1, 5)))):
        found.inputs[key] = copy.deepcopy(defaults[key])
    where = rng.choice(("template", "inputs", "inputs", "both"))
    for _again in range(rng.choice((1, 1, 1, 1, 2, 5))):
        if where != "inputs" or not found.inputs:
            _changed(rng, found.template, found.template)
        if where != "template":
            _changed(rng, found.inputs, found.template)
    return found
