"""Inputs of templates: what follows from properties that they are handed to, and what a source says."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from tosca_properties import leaf_name, properties
from written import NOTE, yaml_block

Words = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tosca" / "source"
WRITER = "scripts/tosca-types"
# TOSCA Simple Profile 1.3, section 3.6.14.
KEYS = ("type", "description", "entry_schema", "default", "constraints")
FORM = ("display_name", "form")
# A cloud looks for an image that has the very words of a machine's capability os, and none has an empty
# word. Where TOSCA 1.3 asks for any distribution, TOSCA 1.0 asks for one that the roles are tested on.
IMAGE = {
    "os.distribution": {
        "description": "Distribution of the cloud's image, such as 'debian' or 'ubuntu'.",
        "default": "debian",
    },
    "os.release": {"description": "Version of the cloud's image, such as '12' or '24.04'.", "default": "12"},
}


def templates(types: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Words]]]:
    """Return each template: its name, its text, and its inputs with what the dashboard's form says of them.

    Args:
        types: the types of this library.

    Raises:
        ValueError: see `completed_inputs`; or something is said of a property that gets no input.
    """
    said = dict(yaml.safe_load((SOURCE / "inputs.yaml").read_text()))
    unused = set(said)
    for path in sorted((SOURCE / "templates").glob("*.yaml")):
        text = path.read_text()
        topology = yaml.safe_load(text)["topology_template"]
        unused -= {key for targets in _handed(topology).values() for key in targets}
        try:
            inputs = completed_inputs(topology, types, said)
        except ValueError as error:
            raise ValueError(f"{path.relative_to(ROOT)}: {error}") from error
        yield path.stem, _in_full(text, f"{WRITER} from {path.relative_to(ROOT)}", inputs), inputs
    if unused:
        names = ", ".join(sorted(unused))
        raise ValueError(f"tosca/source/inputs.yaml: no template has an input for {names}")


def completed_inputs(
    topology: Mapping[str, Any], types: Mapping[str, Any], said: Mapping[str, Words]
) -> dict[str, Words]:
    """Return the inputs of a template with what follows from properties.

    An input that a template hands to a property unchanged is what the property is. `said` says what of it is
    otherwise for all templates, and the template what is otherwise for itself. Beside the words of TOSCA an
    input has `display_name` and `form`, for the dashboard.

    Args:
        topology: topology_template of a source.
        types: the types of this library.
        said: what templates say of inputs, by properties; those of a capability are `capability.property`.

    Raises:
        ValueError: an input says what follows anyway, has no type, or is handed to properties that differ,
            or a description names a property that the template has no input for.
    """
    handed = _handed(topology)
    names = {key: name for name, targets in handed.items() for key in targets}
    foreign = _variables(types) - names.keys() - topology["inputs"].keys()
    found = {}
    for name, own in topology["inputs"].items():
        own = dict(own or {})
        word = own.pop("property", None)
        candidates = {
            key: _merged(_of(types, *target), said.get(key, {}), key)
            for key, target in handed.get(name, {}).items()
        }
        input_ = _merged(_chosen(candidates, own, word, name), own, name)
        if "type" not in input_:
            raise ValueError(f"{name} is handed to no property that has a type; say its type")
        if "description" not in own:
            input_["description"] = _renamed(input_["description"], names, foreign, name)
        found[name] = {key: input_[key] for key in (*KEYS, *FORM) if key in input_}
    return found


def for_clouds(inputs: Mapping[str, Words], topology: Mapping[str, Any]) -> dict[str, Words]:
    """Return inputs as clouds need them: those that choose an image are never empty.

    Args:
        inputs: inputs of a template.
        topology: its topology_template, in TOSCA 1.3.
    """
    image = {name: IMAGE[key] for name, keys in _handed(topology).items() for key in keys if key in IMAGE}
    return {name: {**one, **image.get(name, {})} for name, one in inputs.items()}


def _in_full(text: str, writer: str, inputs: Mapping[str, Words]) -> str:
    """A template with its inputs in full; all else is as it stands in the source."""
    found = {name: {key: one[key] for key in KEYS if key in one} for name, one in inputs.items()}
    topology = _value(yaml.compose(text, Loader=yaml.SafeLoader), "topology_template")
    node = _value(topology, "inputs")
    start = text.rindex("\n", 0, node.start_mark.index) + 1
    end = text.rindex("\n", 0, node.end_mark.index) + 1
    before, after = text[:start].removeprefix("---\n"), text[end:].lstrip("\n")
    return f"---\n{NOTE.format(writer)}\n{before}{yaml_block(found, indent=4)}\n{after}"


def _value(node: Any, name: str) -> Any:
    return next(value for key, value in node.value if key.value == name)


def _handed(topology: Mapping[str, Any]) -> dict[str, dict[str, tuple[str, str, str]]]:
    """The properties that each input is handed to unchanged: node type, capability if any, and name."""
    found: dict[str, dict[str, tuple[str, str, str]]] = {}
    for node in topology["node_templates"].values():
        places = [("", node.get("properties", {}))]
        places += [(name, one.get("properties", {})) for name, one in node.get("capabilities", {}).items()]
        for capability, values in places:
            for name, value in values.items():
                if isinstance(value, dict) and list(value) == ["get_input"]:
                    key = f"{capability}.{name}" if capability else name
                    found.setdefault(value["get_input"], {})[key] = (node["type"], capability, name)
    return found


def _of(types: Mapping[str, Any], node_type: str, capability: str, name: str) -> Words:
    """Return the facts of a property for its input; empty if TOSCA itself defines the property."""
    nodes = types["node_types"]
    bases = {leaf_name(base): base for base in nodes}
    if capability:
        kind = nodes[bases[node_type]].get("capabilities", {}).get(capability, {}).get("type", "")
        defined = properties(kind, types["capability_types"])
    else:
        defined = properties(bases[node_type], nodes)
    return {key: value for key, value in defined.get(name, {}).items() if key in KEYS}


def _chosen(candidates: dict[str, Words], own: Words, word: str | None, name: str) -> Words:
    """Return the facts of an input; of several properties, those of the one that the source names."""
    differing = []
    for candidate in candidates.values():
        left = {key: value for key, value in candidate.items() if key not in own}
        if left not in differing:
            differing.append(left)
    if word is not None and word not in candidates:
        raise ValueError(f"{name} is not handed to the property {word}")
    if word is not None and len(differing) < 2:
        raise ValueError(f"{name}: the properties that it is handed to do not differ; leave out `property`")
    if word is None and len(differing) > 1:
        raise ValueError(f"{name} is handed to {', '.join(candidates)}, which differ; name one as `property`")
    return candidates[word] if word else next(iter(candidates.values()), {})


def _merged(follows: Words, said: Words, name: str) -> Words:
    again = [key for key, value in said.items() if key in follows and follows[key] == value]
    if again:
        raise ValueError(f"{name}: {', '.join(again)} follows from the property")
    found = {**follows, **said}
    if isinstance(follows.get("form"), dict) and "form" in said:
        found["form"] = {**follows["form"], **said["form"]}
    if found.pop("required", False) and "default" not in said:
        found.pop("default", None)
    return found


def _variables(types: Mapping[str, Any]) -> set[str]:
    """The names of all variables of roles, as descriptions have them."""
    found = set()
    for definition in types["node_types"].values():
        role = str(definition.get("metadata", {}).get("role", "")).rpartition(".")[2]
        if role:
            found |= {*definition.get("properties", {}), f"{role}_state"}
    return found


def _renamed(text: str, names: Mapping[str, str], foreign: set[str], name: str) -> str:
    def word(match: re.Match[str]) -> str:
        if match[0] in foreign:
            raise ValueError(f"{name}: its description names {match[0]}, which is no input; say its own")
        return names.get(match[0], match[0])

    return re.sub(r"\w+", word, text)


def plain(schema: Words) -> Words:
    """Say an input in characters that the dashboard bears: its page ends at a double quote or a backslash.

    Args:
        schema: of the input.

    Returns:
        The same with single quotes, and without patterns that have one of these characters; the deployer
        checks values by the template that it has itself.
    """
    found = dict(schema)
    if "description" in found:
        found["description"] = found["description"].replace('"', "'")
    if "constraints" in found:
        patterns = (str(rule.get("pattern", "")) for rule in found["constraints"])
        kept = [
            rule
            for rule, text in zip(found["constraints"], patterns, strict=True)
            if not {'"', "\\"} & {*text}
        ]
        found["constraints"] = kept
        if not kept:
            del found["constraints"]
    return found
