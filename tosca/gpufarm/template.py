# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a service template: tosca-parser judges it, then it is taken apart into a Topology."""

from __future__ import annotations

import contextlib
import copy
import graphlib
import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toscaparser.common.exception import ExceptionCollector, ValidationError
from toscaparser.elements.constraints import Schema
from toscaparser.tosca_template import ToscaTemplate

from gpufarm import library
from gpufarm.document import Document
from gpufarm.errors import BadInput
from gpufarm.library import Library
from gpufarm.topology import DEPLOY, UNDEPLOY, Input, Node, Operation, Topology, is_secret

# Its warnings repeat what is said here in better words.
logging.getLogger("tosca").addHandler(logging.NullHandler())
logging.getLogger("tosca").propagate = False

# Properties of the capabilities of a Compute node by which machines are chosen.
_HEEDED = {
    "host": ("num_cpus", "mem_size", "disk_size"),
    "os": ("distribution", "version"),
    "gpu": ("count", "model", "memory", "mig_capable"),
}
_STANDARD = ("Standard", "tosca.interfaces.node.lifecycle.Standard")


def _quoted(text: str) -> list[str]:
    """The words in quotation marks, the innermost first, as `Library.where` wants them."""
    words = [first or second for first, second in re.findall(r"\"([^\"]+)\"|'([^']+)'", text)]
    if re.match(r'[\w ]*: *"\w+" of template "', text):
        words[:2] = reversed(words[:2])  # "properties" of template "x": x is the outer one
    return words[::-1]


def judge(source: Library, values: dict[str, Any] | None = None) -> ToscaTemplate:
    """Have tosca-parser validate the template.

    Args:
        source: the template and its imports.
        values: of inputs; with them, what they feed is judged as well. tosca-parser itself does not check a
            property or a capability whose value comes from an input.

    Returns:
        tosca-parser's own view of the template.

    Raises:
        BadInput: the template is refused.
    """
    flat = copy.deepcopy(source.flat())
    if values is not None:
        flat["topology_template"] = _with_inputs(flat["topology_template"], values)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return ToscaTemplate(yaml_dict_tpl=flat)
    except ValidationError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        first = next((line for line in lines[1:]), lines[0])
        first = re.sub(r"^(\w+: *)?'(.*)'$", r"\2", first)
        sentence = re.sub(r"^\w+: +|\.$| Refer to the definition to verify valid values\.$", "", first)
        raise BadInput(f"{source.where(*_quoted(first))}: {sentence}") from error
    except Exception as error:  # a malformed template reaches tosca-parser's code as any exception of Python
        text = str(error).partition("\n")[0]
        place = source.where(text.strip("'\"")) if text else source.where()
        raise BadInput(
            f"{place}: is no valid TOSCA; tosca-parser stops with {type(error).__name__}: {text}"
        ) from error
    finally:
        ExceptionCollector.stop()


def _with_inputs(value: Any, values: dict[str, Any]) -> Any:
    """The value with every ``{get_input: name}`` replaced."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("get_input"), str) and value["get_input"] in values:
            return values[value["get_input"]]
        return {key: _with_inputs(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_inputs(item, values) for item in value]
    return value


def _mapping(source: Library, value: Any, what: str, *names: str) -> dict[str, Any]:
    """The value if it is a mapping with text as keys, an empty one for nothing."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise BadInput(f"{source.where(*names)}: {what} has to be a mapping of names to values")
    return value


def _ancestry(source: Library, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The type and its ancestors that the library defines, nearest first."""
    seen: set[str] = set()
    types = source.types["node_types"]
    while name in types:
        if name in seen:
            raise BadInput(f"{source.where(name)}: type {name} derives from itself")
        seen.add(name)
        yield name, types[name]
        name = str(types[name].get("derived_from"))


def _inputs(source: Library, topology: dict[str, Any]) -> dict[str, Input]:
    metadata = _mapping(source, source.template.data.get("metadata"), "metadata", "metadata")
    secrets = str(metadata.get("secret_inputs", "")).split()
    found = {}
    for name, schema in _mapping(source, topology.get("inputs"), "inputs", "inputs").items():
        definition = _mapping(source, schema, f"input {name}", name, "inputs")
        if definition.get("type") not in Schema.PROPERTY_TYPES:
            raise BadInput(f"{source.where(name, 'inputs')}: input {name} has no type that TOSCA knows")
        found[name] = Input(name, definition, name in secrets or is_secret(name))
    for name in secrets:
        if name not in found:
            raise BadInput(f"{source.where(name)}: secret_inputs names {name}, which is no input")
    return found


def _operation(source: Library, origin: Document, name: str, body: Any, shared: dict[str, Any]) -> Operation:
    place = (name, "operations")
    definition = (
        {"implementation": body}
        if isinstance(body, str)
        else _mapping(source, body, f"operation {name}", *place)
    )
    implementation = definition.get("implementation")
    if isinstance(implementation, dict):
        implementation = implementation.get("primary")
    if not isinstance(implementation, str):
        raise BadInput(f"{source.where(*place)}: operation {name} names no playbook as its implementation")
    playbook = origin.beside(implementation)
    inputs = shared | _mapping(source, definition.get("inputs"), f"inputs of operation {name}", *place)
    outputs = {}
    for key, target in _mapping(
        source, definition.get("outputs"), f"outputs of operation {name}", *place
    ).items():
        if not (
            isinstance(target, list)
            and len(target) == 2
            and target[0] == "SELF"
            and isinstance(target[1], str)
        ):
            raise BadInput(f"{source.where(key, name)}: output {key} has to be [SELF, an attribute]")
        outputs[key] = target[1]
    return Operation(playbook, {key: _expression(value) for key, value in inputs.items()}, outputs)


def _expression(definition: Any) -> Any:
    """The value of an operation's input: ``{type, value}`` (TOSCA 1.3) or the value itself (1.0)."""
    if isinstance(definition, dict) and "type" in definition:
        return definition.get("value", definition.get("default"))
    return definition


def _operations(source: Library, name: str, body: dict[str, Any]) -> dict[str, Operation]:
    """The operations of a node: those of the nearest type that has any, under those of the node template.

    A derived type's interface replaces its parent's, as tosca-parser and xOpera have it.
    """
    layers: list[tuple[Document, Any]] = [(source.template, body.get("interfaces"))]
    for type_name, definition in _ancestry(source, str(body["type"])):
        if definition.get("interfaces"):
            layers.append((source.origin[type_name], definition["interfaces"]))
            break
    found: dict[str, Operation] = {}
    for origin, interfaces in reversed(layers):
        for interface, content in _mapping(source, interfaces, "interfaces", name).items():
            if interface not in _STANDARD:
                raise BadInput(
                    f"{source.where(interface)}: interface {interface} is not supported, only Standard is"
                )
            standard = _mapping(source, content, "Standard", interface)
            shared = _mapping(source, standard.get("inputs"), "inputs of Standard", interface)
            # TOSCA 1.0 has no key `operations`: the operations stand in the interface itself
            flat = {key: value for key, value in standard.items() if key in (*DEPLOY, *UNDEPLOY)}
            operations = _mapping(
                source, standard.get("operations", flat), "operations", "operations", interface
            )
            for operation, definition in operations.items():
                if operation not in (*DEPLOY, *UNDEPLOY):
                    raise BadInput(
                        f"{source.where(operation, interface)}: operation {operation} is unknown; "
                        f"Standard has {', '.join((*DEPLOY, *UNDEPLOY))}"
                    )
                found[operation] = _operation(source, origin, operation, definition, shared)
    return found


def _requirements(
    source: Library, name: str, body: dict[str, Any], nodes: dict[str, Any]
) -> list[tuple[str, str]]:
    """Pairs of a requirement and the node that fulfils it."""
    found = []
    entries = body.get("requirements") or []
    if not isinstance(entries, list):
        raise BadInput(f"{source.where('requirements', name)}: requirements has to be a list")
    for entry in entries:
        for requirement, target in _mapping(source, entry, "a requirement", "requirements", name).items():
            chosen = target.get("node") if isinstance(target, dict) else target
            if not isinstance(chosen, str) or chosen not in nodes:
                raise BadInput(
                    f"{source.where(requirement, name)}: requirement {requirement} of node {name} "
                    f"has to name a node of the template, not {chosen}"
                )
            found.append((requirement, chosen))
    return found


def _only_what_is_heeded(source: Library, name: str, body: dict[str, Any], *, is_machine: bool) -> None:
    """Refuse what would be ignored, and so would not be what the author of the template thinks it is."""
    for key in ("node_filter", "directives", "copy"):
        if key in body:
            raise BadInput(f"{source.where(key, name)}: {key} of node {name} is not supported; remove it")
    for capability, content in (body.get("capabilities") or {}).items() if is_machine else ():
        written = (content or {}).get("properties") or {}
        for key in written if capability in ("host", "os", "scalable", "gpu") else ():
            if key not in _HEEDED.get(capability, ()):
                raise BadInput(
                    f"{source.where(key, capability, name)}: {capability}.{key} of node {name} does nothing: "
                    "machines are not chosen by it; remove it"
                )


def _capabilities(source: Library, parsed: Any, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Properties of the capabilities: the defaults of their types, under what the node template says.

    What the node template says is taken as written: tosca-parser puts the defaults of inputs in its place.
    """
    written = _mapping(source, body.get("capabilities"), "capabilities", "capabilities", parsed.name)
    found = {}
    for capability in parsed.get_capabilities_objects():
        own = _mapping(source, written.get(capability.name), capability.name, capability.name, parsed.name)
        values = _mapping(
            source, own.get("properties"), "properties", "properties", capability.name, parsed.name
        )
        found[capability.name] = {**capability._properties, **values}
    return found


def _node(source: Library, parsed: Any, body: dict[str, Any], nodes: dict[str, Any]) -> Node:
    requirements = _requirements(source, parsed.name, body, nodes)
    defaults: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for _type, definition in reversed(list(_ancestry(source, str(body["type"])))):
        for name, schema in _mapping(
            source, definition.get("properties"), "properties", "properties"
        ).items():
            if isinstance(schema, dict) and "default" in schema:
                defaults[name] = schema["default"]
        for name, schema in _mapping(
            source, definition.get("attributes"), "attributes", "attributes"
        ).items():
            attributes[name] = schema.get("default") if isinstance(schema, dict) else None
    is_machine = bool(parsed.is_derived_from("tosca.nodes.Compute"))
    _only_what_is_heeded(source, parsed.name, body, is_machine=is_machine)
    if is_machine:
        attributes |= {"private_address": None, "public_address": None}
    return Node(
        name=parsed.name,
        type=str(body["type"]),
        is_machine=is_machine,
        host=next((target for requirement, target in requirements if requirement == "host"), None),
        needs=tuple(dict.fromkeys(target for _requirement, target in requirements)),
        properties=defaults
        | _mapping(source, body.get("properties"), "properties", "properties", parsed.name),
        defaults=defaults,
        attributes=attributes,
        capabilities=_capabilities(source, parsed, body),
        operations=_operations(source, parsed.name, body),
    )


def _ordered(source: Library, nodes: dict[str, Node]) -> dict[str, Node]:
    try:
        order = list(
            graphlib.TopologicalSorter({name: node.needs for name, node in nodes.items()}).static_order()
        )
    except graphlib.CycleError as error:
        circle = " -> ".join(error.args[1])
        raise BadInput(
            f"{source.where(error.args[1][0])}: these nodes need each other in a circle: {circle}"
        ) from error
    return {name: nodes[name] for name in order}


def read(path: Path) -> tuple[Library, Topology]:
    """Read and validate a service template.

    Args:
        path: the template.

    Returns:
        The template with its imports, and the topology that it describes.

    Raises:
        BadInput: it is no valid service template; the sentence says where and why.
    """
    source = library.load(path)
    content = source.template.data.get("topology_template")
    if not content:
        raise BadInput(
            f"{path}: has no topology_template, so it is no service template; is it a file of types?"
        )
    topology = _mapping(source, content, "topology_template", "topology_template")
    for key in ("substitution_mappings", "workflows", "policies", "groups"):
        if topology.get(key):
            raise BadInput(f"{source.where(key)}: {key} of a template are not supported; remove them")
    bodies = _mapping(source, topology.get("node_templates"), "node_templates", "node_templates")
    if not bodies:
        raise BadInput(
            f"{source.where('topology_template')}: the template has no node_templates, so nothing to set up"
        )
    for name, body in bodies.items():
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            raise BadInput(f"{source.where(name)}: node {name} has no type")
        list(_ancestry(source, body["type"]))
        _requirements(source, name, body, bodies)
    inputs = _inputs(source, topology)
    parsed = judge(source)
    try:
        nodes = {node.name: _node(source, node, bodies[node.name], bodies) for node in parsed.nodetemplates}
    except (
        AttributeError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:  # tosca-parser evaluates parts of types late
        raise BadInput(f"{path}: is no valid TOSCA: {type(error).__name__}: {error}") from error
    outputs = {
        name: _mapping(source, output, f"output {name}", name, "outputs")
        for name, output in _mapping(source, topology.get("outputs"), "outputs", "outputs").items()
    }
    metadata = source.template.data.get("metadata") or {}
    return source, Topology(
        path=path.resolve(),
        name=str(metadata.get("template_name") or path.stem),
        inputs=inputs,
        nodes=_ordered(source, nodes),
        outputs={name: output.get("value") for name, output in outputs.items()},
        descriptions={
            name: str(output["description"]).strip()
            for name, output in outputs.items()
            if output.get("description")
        },
    )
