# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a service template and takes it apart into a Topology; complains about everything at once."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpufarm import dialect, library, policies, schemas, secrecy, values
from gpufarm.catalogue import Catalogue, idle
from gpufarm.document import Document
from gpufarm.errors import BadTemplate
from gpufarm.functions import Scope
from gpufarm.interfaces import Keys, artifacts, mapping, operations
from gpufarm.library import Library
from gpufarm.problems import Place, Problem, Report, near
from gpufarm.references import References
from gpufarm.requirements import requirements
from gpufarm.topology import Input, Node, Operation, Policy, Topology, is_person, is_secret

# Properties of the capabilities of a Compute node by which machines are chosen.
_HEEDED = {
    "host": ("num_cpus", "mem_size", "disk_size", "num_gpus", "gpu_model"),
    "os": ("type", "architecture", "distribution", "version", "release"),
    "gpu": ("count", "model", "memory", "mig_capable"),
    "scalable": ("min_instances", "max_instances", "default_instances", "count"),
}
_NODE_KEYS = (
    *("type", "description", "metadata", "properties", "requirements", "capabilities", "interfaces"),
    "artifacts",
)
_UNSUPPORTED = ("substitution_mappings", "workflows", "groups", "relationship_templates")
# Capability of INDIGO's workers, with the bounds of their number.
_WORKERS = "tosca.capabilities.indigo.Worker"
VERSIONS = ("tosca_simple_yaml_1_0", "tosca_simple_yaml_1_2", "tosca_simple_yaml_1_3")
# Names stand in tables, logs and names of steps; "name[2]" is an instance.
_NAME = re.compile(r"\w[\w. -]{0,99}")
_GROUP = re.compile(r"[a-z_][a-z0-9_]{0,99}")
_NODES: Keys = ("topology_template", "node_templates")


@dataclass(frozen=True)
class _Kind:
    """Common properties of all nodes of a type."""

    name: str
    is_machine: bool
    properties: dict[str, Any]
    capabilities: dict[str, Any]
    defaults: dict[str, Any]
    attributes: dict[str, Any]
    operations: dict[str, Operation]
    metadata: dict[str, Any]
    lists: frozenset[str]


class _Reader:
    """Reads one template."""

    def __init__(self, source: Library, report: Report) -> None:
        self.catalogue = Catalogue(source)
        if source.indigo:
            data = dialect.properties(source.template.data, self.catalogue.properties_of)
            source.template = replace(source.template, data=data)
        self.document: Document = source.template
        self.source = source
        self.report = report
        self.known_kinds: dict[str, _Kind] = {}
        self.policy_places: dict[str, Keys] = {}
        self.untyped: set[str] = set()
        self.adrift: set[str] = set()  # nodes of which it has been told that a requirement is wrong

    def mapping(self, value: Any, what: str, *keys: str | int) -> dict[str, Any]:
        return mapping(value, what, self.document, keys, self.report)

    def named(self, value: Any, what: str, *keys: str | int) -> dict[str, Any]:
        """A mapping of which the keys are names."""
        found = self.mapping(value, what, *keys)
        for name in found:
            if not _NAME.fullmatch(name):
                text = f'{name[:100]!r} is no name; use letters, digits, "_", "-", "." and blanks'
                self.report.add(self.at(*keys, name), text)
        return {name: body for name, body in found.items() if _NAME.fullmatch(name)}

    def at(self, *keys: str | int) -> Place:
        return self.document.at(*keys)

    def kind(self, name: str) -> _Kind:
        if name not in self.known_kinds:
            self.known_kinds[name] = self._kind(name)
        return self.known_kinds[name]

    def _kind(self, name: str) -> _Kind:
        """Read a type. Its operations are those of the nearest type that has any: a derived type's interface
        replaces its parent's, as tosca-parser and xOpera have it.
        """
        members = self.catalogue.members
        is_machine = self.catalogue.derives("node_types", name, "tosca.nodes.Compute")
        attributes: dict[str, Any] = {}
        found: dict[str, Operation] = {}
        metadata: dict[str, Any] = {}
        ancestry = self.catalogue.ancestry("node_types", name)
        own = [
            (entry, origin) for entry in ancestry if (origin := self.catalogue.origin("node_types", entry))
        ]
        for entry, _origin in reversed(own):
            definition = self.catalogue.names("node_types")[entry]
            written = definition.get("attributes")
            for attribute, body in written.items() if isinstance(written, dict) else ():
                attributes[str(attribute)] = body.get("default") if isinstance(body, dict) else None
            told = definition.get("metadata")
            metadata |= told if isinstance(told, dict) else {}
        if is_machine:
            attributes |= {"private_address": None, "public_address": None}
        for entry, origin in own:
            interfaces = self.catalogue.names("node_types")[entry].get("interfaces")
            if interfaces:
                keys = ("node_types", entry, "interfaces")
                found = operations(interfaces, attributes, self.catalogue, origin, keys, self.report)
                break
        properties = members("node_types", name, "properties")
        return _Kind(
            name=name,
            is_machine=is_machine,
            properties=properties,
            capabilities=members("node_types", name, "capabilities"),
            defaults={key: body["default"] for key, body in properties.items() if "default" in body},
            attributes=attributes,
            operations=found,
            metadata=metadata,
            lists=frozenset(
                attribute
                for attribute, body in members("node_types", name, "attributes").items()
                if body.get("type") == "list"
            ),
        )

    def inputs(self, topology: Mapping[str, Any]) -> dict[str, Input]:
        metadata = self.mapping(self.document.data.get("metadata"), "metadata", "metadata")
        secrets = str(metadata.get("secret_inputs", "")).split()
        keys: Keys = ("topology_template", "inputs")
        found = {}
        for name, schema in self.named(topology.get("inputs"), "inputs", *keys).items():
            place = (*keys, name)
            schemas.examine_schema(f"input {name}", schema, self.catalogue, self.document, place, self.report)
            definition = schema if isinstance(schema, dict) else {"type": "string"}
            wrong = values.unfit(definition.get("default"))
            if wrong:
                self.report.add(self.at(*place, "default"), f"the default of input {name}: {wrong}")
            found[name] = Input(name, definition, name in secrets or is_secret(name), is_person(name))
        for name in secrets:
            if name not in found:
                text = f"secret_inputs names {name}, which is no input; {near(name, found)}"
                self.report.add(self.at("metadata", "secret_inputs"), text)
        return found

    def values(
        self, what: str, written: Any, schemas_of: Mapping[str, Any], keys: Keys, defaults: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Properties of a node or a capability: written, known, complete and of the right kinds."""
        found = self.mapping(written, f"properties of {what}", *keys)
        for name, value in found.items():
            if name not in schemas_of:
                hint = near(name, schemas_of)
                self.report.add(self.at(*keys, name), f"{what} has no property {name}; {hint}")
                continue
            try:
                wrong = values.fault(schemas_of[name], value, self.catalogue.names("data_types"))
            except values.BadSchema:
                continue  # told where the type stands
            if value is None:
                wrong = (
                    "has no value; write one or remove it" if schemas_of[name].get("required", True) else ""
                )
            if wrong:
                self.report.add(self.at(*keys, name), f"property {name} of {what}: {wrong}")
        for name, schema in schemas_of.items():
            if schema.get("required", True) is not False and name not in found and name not in defaults:
                text = f"{what} needs the property {name}"
                meaning = str(schema.get("description") or "").strip().rstrip(".")
                self.report.add(self.at(*keys[:3]), f"{text} ({meaning})" if meaning else text)
        return found

    def capabilities(self, name: str, body: Mapping[str, Any], kind: _Kind) -> dict[str, dict[str, Any]]:
        keys: Keys = (*_NODES, name, "capabilities")
        written = self.mapping(body.get("capabilities"), "capabilities", *keys)
        for entry in written:
            if entry not in kind.capabilities:
                hint = near(entry, kind.capabilities)
                self.report.add(self.at(*keys, entry), f"node {name} has no capability {entry}; {hint}")
        found = {}
        for entry, definition in kind.capabilities.items():
            type_name = self.catalogue.named("capability_types", definition.get("type")) or ""
            properties = self.catalogue.members("capability_types", type_name, "properties")
            properties = {**properties, **(definition.get("properties") or {})}
            defaults = {
                key: schema["default"]
                for key, schema in properties.items()
                if isinstance(schema, dict) and "default" in schema
            }
            own = {}
            if entry in written:
                content = self.mapping(written[entry], f"capability {entry}", *keys, entry)
                place = (*keys, entry, "properties")
                what = f"capability {entry} of node {name}"
                own = self.values(what, content.get("properties"), properties, place, defaults)
                for key in own if kind.is_machine and entry in _HEEDED else ():
                    if key in properties and key not in _HEEDED[entry] and not idle(properties[key]):
                        text = f"{entry}.{key} of node {name} does nothing: machines are not chosen by it"
                        self.report.add(self.at(*place, key), f"{text}; remove it")
            found[entry] = {**defaults, **own}
        if kind.is_machine:
            self._instances(name, found.get("scalable", {}), (*keys, "scalable"))
        return found

    def _instances(self, name: str, scalable: Mapping[str, Any], keys: Keys) -> None:
        low, high = scalable.get("min_instances", 1), scalable.get("max_instances", 1)
        default = scalable.get("default_instances", low)
        if not all(isinstance(number, int) for number in (low, high, default)):
            self.report.add(self.at(*keys), f"the numbers of instances of node {name} have to be integers")
        elif not 1 <= low <= default <= high:
            text = f"node {name} has at least {low}, by default {default} and at most {high} instances"
            self.report.add(self.at(*keys), f"{text}; order them, beginning with 1 or more")

    def node(self, name: str, body: Mapping[str, Any], kinds: Mapping[str, str]) -> Node:
        kind = self.kind(kinds[name])
        place: Keys = (*_NODES, name)
        for key in body:
            if key not in _NODE_KEYS:
                hint = (
                    "remove it"
                    if key in ("node_filter", "directives", "copy", "attributes")
                    else near(key, _NODE_KEYS)
                )
                self.report.add(self.at(*place, key), f"{key} of node {name} is not supported; {hint}")
        artifacts(body.get("artifacts"), self.catalogue, self.document, (*place, "artifacts"), self.report)
        before = len(self.report.problems)
        first = str(kind.metadata.get("after") or "")
        before_it = [
            other
            for other, its_type in kinds.items()
            if first and other != name and self.catalogue.derives("node_types", its_type, first)
        ]
        pairs = requirements(name, body, kinds, self.untyped, self.catalogue, self.document, self.report)
        if len(self.report.problems) > before:
            self.adrift.add(name)
        own = self.values(
            f"node {name}", body.get("properties"), kind.properties, (*place, "properties"), kind.defaults
        )
        return Node(
            name=name,
            type=kinds[name],
            is_machine=kind.is_machine,
            host=next((target for requirement, target in pairs if requirement == "host"), None),
            needs=tuple(dict.fromkeys([*(target for _requirement, target in pairs), *before_it])),
            properties=kind.defaults | own,
            defaults=kind.defaults,
            attributes=kind.attributes,
            capabilities=self.capabilities(name, body, kind),
            operations=kind.operations
            | operations(
                body.get("interfaces"),
                kind.attributes,
                self.catalogue,
                self.document,
                (*place, "interfaces"),
                self.report,
            ),
            on_controller=kind.metadata.get("runs_on") == "controller",
            disruption=str(kind.metadata.get("disruption") or ""),
            switch=str(kind.metadata.get("switch") or ""),
            inventory_group=self.inventory_group(name, body, kind),
            names=tuple(str(kind.metadata.get("names") or "").split()),
            lists=kind.lists,
            artifacts=_files(body.get("artifacts")),
            workers=self._workers(kind),
            texts={key: schema.get("type") for key, schema in kind.properties.items()}
            if self.source.indigo
            else {},
            requirements={
                known: tuple(target for requirement, target in pairs if requirement == known)
                for known in self.catalogue.requirements(kinds[name])
            },
        )

    def inventory_group(self, name: str, body: Mapping[str, Any], kind: _Kind) -> str:
        """Return the group of the node's machine, which the node's own metadata may say for the type's."""
        place: Keys = (*_NODES, name, "metadata")
        own = self.mapping(body.get("metadata"), f"metadata of node {name}", *place).get("inventory_group")
        if own is None:
            return str(kind.metadata.get("inventory_group") or "")
        if not isinstance(own, str) or not _GROUP.fullmatch(own):
            text = f"inventory_group of node {name} names no group of an inventory"
            self.report.add(self.at(*place, "inventory_group"), f"{text}; write letters, digits and _")
        return str(own)

    def _workers(self, kind: _Kind) -> str:
        for name, definition in kind.capabilities.items():
            own = self.catalogue.named("capability_types", definition.get("type"))
            if self.catalogue.derives("capability_types", own, _WORKERS):
                return name
        return ""

    def ordered(self, nodes: dict[str, Node]) -> dict[str, Node]:
        graph = {name: [need for need in node.needs if need in nodes] for name, node in nodes.items()}
        try:
            order = list(graphlib.TopologicalSorter(graph).static_order())
        except graphlib.CycleError as error:
            circle = " -> ".join(error.args[1])
            place = self.at(*_NODES, error.args[1][0])
            self.report.add(place, f"these nodes need each other in a circle: {circle}")
            order = list(nodes)
        return {name: nodes[name] for name in order}

    def policies(
        self, topology: Mapping[str, Any], nodes: dict[str, Node], bodies: Mapping[str, Any]
    ) -> tuple[dict[str, Policy], dict[str, Node]]:
        """Read the policies, and give their targets what they say."""
        found: dict[str, Policy] = {}
        for name, written, keys in policies.entries(topology.get("policies"), self.document, self.report):
            body = self.mapping(written, f"policy {name}", *keys)
            if name in found:
                self.report.add(self.at(*keys), f"there is another policy {name}; rename one")
            kinds = policies.understood(name, body, nodes, self.catalogue, self.document, keys, self.report)
            if not kinds:
                continue
            schemas_of = self.catalogue.members("policy_types", kinds[0], "properties")
            defaults = {key: schema["default"] for key, schema in schemas_of.items() if "default" in schema}
            own = self.values(
                f"policy {name}", body.get("properties"), schemas_of, (*keys, "properties"), defaults
            )
            targets = body.get("targets")
            named = tuple(map(str, targets)) if isinstance(targets, list) else ()
            found[name] = Policy(name, kinds, named, defaults | own)
            self.policy_places[name] = keys
            nodes = policies.applied(found[name], nodes, bodies, self.document, keys, self.report)
        return found, nodes

    def outputs(self, topology: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        keys: Keys = ("topology_template", "outputs")
        for name, body in self.named(topology.get("outputs"), "outputs", *keys).items():
            output = self.mapping(body, f"output {name}", *keys, name)
            if "value" not in output:
                self.report.add(self.at(*keys, name), f"output {name} has no value")
            yield name, output

    def references(self, topology: Topology, bodies: Mapping[str, Any]) -> None:
        kinds = {name: node.type for name, node in topology.nodes.items()}
        found = References(topology.inputs, topology, self.catalogue, kinds, self.untyped, self.report)
        seen: set[tuple[str, str]] = set()
        for name, node in topology.nodes.items():
            body = bodies[name]
            for key in ("properties", "capabilities"):
                written = body.get(key)
                for entry, value in written.items() if isinstance(written, dict) else ():
                    keys = (*_NODES, name, key, entry)
                    own = str(entry) if key == "properties" else None
                    found.examine(value, self.document, keys, name, own)
            adrift = topology.machine_of(name) is None and not node.on_controller
            if node.operations and adrift and name not in self.adrift:
                text = f"node {name} stands on no machine; add the requirement host"
                self.report.add(self.at(*_NODES, name), text)
            found.examine(body.get("interfaces"), self.document, (*_NODES, name, "interfaces"), name)
            for kind in self.catalogue.ancestry("node_types", node.type):
                origin = self.catalogue.origin("node_types", kind)
                # one node of a type tells for all of them, unless the type names HOST
                placed = topology.machine_of(name) or node.on_controller
                if origin and (kind, node.type) not in seen and placed:
                    seen.add((kind, node.type))
                    interfaces = self.catalogue.names("node_types")[kind].get("interfaces")
                    self._of_type(found, interfaces, origin, kind, node)
        for name, policy in topology.policies.items():
            found.examine(policy.properties, self.document, (*self.policy_places[name], "properties"))
        found.circles()
        for name, expression in topology.outputs.items():
            keys = ("topology_template", "outputs", name, "value")
            found.examine(expression, self.document, keys, before=False)

    def _of_type(self, found: References, interfaces: Any, origin: Document, kind: str, node: Node) -> None:
        """Inputs of operations: a property without a value is simply not passed."""
        optional = {**dict.fromkeys(self.kind(node.type).properties), **node.properties}
        full = Topology(
            found.topology.path,
            found.topology.name,
            found.topology.inputs,
            {**found.topology.nodes, node.name: _with_properties(node, optional)},
            {},
        )
        References(found.inputs, full, self.catalogue, found.kinds, self.untyped, self.report).examine(
            _without_outputs(interfaces), origin, ("node_types", kind, "interfaces"), node.name
        )


def _marked(topology: Topology) -> dict[str, Input]:
    """The inputs; those that lead to a secret (no switch is one) or a person by its name are marked so."""
    scope = Scope(topology, {})
    secrets: set[str] = set()
    persons: set[str] = set()
    for node in topology.nodes.values():
        variables = [node.properties, *(operation.inputs for operation in node.operations.values())]
        for part in secrecy.parts([node.capabilities, *variables]):
            secrets |= scope.inputs_of(part, node.name)
        for part in [value for named in variables for name, value in named.items() if is_person(name)]:
            persons |= scope.inputs_of(part, node.name)
    for part in secrecy.parts([policy.properties for policy in topology.policies.values()]):
        secrets |= scope.inputs_of(part)
    secrets -= {name for name, entry in topology.inputs.items() if entry.schema.get("type") == "boolean"}
    return {
        name: replace(entry, secret=entry.secret or name in secrets, person=entry.person or name in persons)
        for name, entry in topology.inputs.items()
    }


def _files(artifacts: Any) -> dict[str, Any]:
    """The files of a node's artifacts, by name."""
    found = artifacts.items() if isinstance(artifacts, dict) else ()
    return {str(name): one.get("file") if isinstance(one, dict) else one for name, one in found}


def _file_variables(catalogue: Catalogue, key: str) -> frozenset[str]:
    """The variables that name files of the controller, as this entry of the metadata of any type says."""
    told = (body.get("metadata") for body in catalogue.names("node_types").values() if isinstance(body, dict))
    listed = (str(metadata.get(key, "")) for metadata in told if isinstance(metadata, dict))
    return frozenset(name for names in listed for name in names.split())


def _with_properties(node: Node, properties: dict[str, Any]) -> Node:
    return Node(**{**vars(node), "properties": properties})


def _without_outputs(interfaces: Any) -> Any:
    """Interfaces without the outputs of operations, whose ``[SELF, attribute]`` is no function."""
    if isinstance(interfaces, dict):
        return {key: _without_outputs(item) for key, item in interfaces.items() if key != "outputs"}
    return interfaces


def read_inputs(path: Path) -> tuple[Library, Topology]:
    """Read only the inputs of a service template, of one in which something else may be wrong.

    Args:
        path: the template.

    Returns:
        The template with its imports, and a topology without nodes.

    Raises:
        BadTemplate: the template cannot be read at all.
    """
    report = Report()
    source = library.load(path, report)
    reader = _Reader(source, report)
    content = reader.mapping(
        source.template.data.get("topology_template"), "topology_template", "topology_template"
    )
    return source, Topology(path.resolve(), path.stem, reader.inputs(content), {}, {})


def read(path: Path, text: str = "") -> tuple[Library, Topology]:
    """Read and examine a service template.

    Args:
        path: the template.
        text: content to take for that of its file, which need not be there; empty to read the file. The files
            that it names are beside the path and in the same folders as ever.

    Returns:
        The template with its imports, and the topology that it describes.

    Raises:
        BadTemplate: it is no valid service template; it says everything that is wrong, and where.
    """
    report = Report()
    source = library.load(path, report, text)
    if not source.complete:
        report.conclude()  # types that are not there would only be missed everywhere
    reader = _Reader(source, report)
    version = source.template.data.get("tosca_definitions_version")
    if version not in VERSIONS:
        text = f'version "{version}" is invalid; use {VERSIONS[-1]}'
        report.add(reader.at("tosca_definitions_version"), text)
    content = source.template.data.get("topology_template")
    if not content:
        text = "has no topology_template, so it is no service template; is it a file of types?"
        raise BadTemplate([Problem(Place(str(path)), text)])
    schemas.examine(reader.catalogue, report)
    topology = reader.mapping(content, "topology_template", "topology_template")
    for key in _UNSUPPORTED:
        if topology.get(key):
            place = reader.at("topology_template", key)
            report.add(place, f"{key} of a template are not supported; remove them")
    bodies = reader.named(topology.get("node_templates"), "node_templates", *_NODES)
    if not bodies:
        report.add(reader.at(*_NODES), "the template has no node_templates, so nothing to set up")
    kinds = {}
    for name, body in bodies.items():
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            report.add(reader.at(*_NODES, name), f"node {name} has no type")
            continue
        kind = reader.catalogue.named("node_types", body["type"])
        if kind is None:
            hint = near(body["type"], reader.catalogue.names("node_types"))
            text = dialect.refusal(body["type"]) or f"there is no type {body['type']}; {hint}"
            report.add(reader.at(*_NODES, name, "type"), text)
        else:
            kinds[name] = kind
    reader.untyped = set(bodies) - set(kinds)
    inputs = reader.inputs(topology)
    nodes = {name: reader.node(name, bodies[name], kinds) for name in kinds}
    agreed, nodes = reader.policies(topology, nodes, bodies)
    outputs = dict(reader.outputs(topology))
    metadata = source.template.data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    found = Topology(
        path=path.resolve(),
        name=str(metadata.get("template_name") or path.stem),
        inputs=inputs,
        nodes=reader.ordered(nodes),
        outputs={name: output.get("value") for name, output in outputs.items()},
        descriptions={
            name: str(output["description"]).strip()
            for name, output in outputs.items()
            if output.get("description")
        },
        policies=agreed,
        description=" ".join(str(source.template.data.get("description") or "").split()),
        text=source.template.text,
        file_variables=_file_variables(reader.catalogue, "controller_files"),
        removal_files=_file_variables(reader.catalogue, "removal_files"),
    )
    reader.references(found, bodies)
    report.conclude()
    return source, replace(found, inputs=_marked(found))
