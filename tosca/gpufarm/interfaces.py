# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the operations of node types and node templates, and complains about those that cannot be run."""

from __future__ import annotations

import re
from typing import Any

from gpufarm.catalogue import Catalogue
from gpufarm.document import Document
from gpufarm.problems import Place, Report, near
from gpufarm.topology import DEPLOY, UNDEPLOY, Operation
from gpufarm.values import function

_STANDARD = ("Standard", "tosca.interfaces.node.lifecycle.Standard")
_OPERATIONS = (*DEPLOY, *UNDEPLOY)
_PLAYBOOKS = (".yml", ".yaml")
# Inputs of operations are variables of Ansible; those called ansible_... say how it reaches a machine.
_VARIABLE = re.compile(r"(?!ansible_)[A-Za-z_][A-Za-z0-9_]*")
Keys = tuple[str | int, ...]


def mapping(value: Any, what: str, document: Document, keys: Keys, report: Report) -> dict[str, Any]:
    """Expect a mapping.

    Args:
        value: as written.
        what: its name in a complaint.
        document: where it stands.
        keys: the way to it.
        report: gets the complaint.

    Returns:
        The value if it is a mapping with text as keys; an empty one for nothing and for anything else.
    """
    if value is None:
        return {}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    report.add(document.at(*keys), f"{what} has to be a mapping of names to values")
    return {}


def _expression(definition: Any) -> Any:
    """The value of an operation's input: ``{type, value}`` (TOSCA 1.3) or the value itself (1.0)."""
    if isinstance(definition, dict) and "type" in definition:
        return definition.get("value", definition.get("default"))
    return definition


def _outputs(
    body: Any, attributes: dict[str, Any], document: Document, keys: Keys, report: Report
) -> dict[str, str]:
    found = {}
    for key, target in mapping(body, "outputs of an operation", document, keys, report).items():
        if not (isinstance(target, list) and len(target) == 2 and target[0] == "SELF"):
            report.add(document.at(*keys, key), f"output {key} has to be [SELF, an attribute]")
        elif not isinstance(target[1], str) or target[1] not in attributes:
            hint = near(target[1], attributes)
            report.add(
                document.at(*keys, key), f"output {key} sets {target[1]}, which is no attribute; {hint}"
            )
        else:
            found[key] = str(target[1])
    return found


def _dependencies(names: Any, document: Document, keys: Keys, report: Report) -> None:
    """Complain about files that a playbook needs and that are not there."""
    for index, name in enumerate(names if isinstance(names, list) else [names] if names else []):
        if not isinstance(name, str) or not document.beside(name):
            place = document.at(*keys, "dependencies", index)
            report.add(place, f"a file that the operation depends on: {document.lacks(str(name))}")


def _operation(
    name: str,
    body: Any,
    shared: dict[str, Any],
    attributes: dict[str, Any],
    catalogue: Catalogue,
    document: Document,
    keys: Keys,
    report: Report,
) -> Operation | None:
    if isinstance(body, str):
        body = {"implementation": body}
    definition = mapping(body, f"operation {name}", document, keys, report)
    implementation = definition.get("implementation")
    if isinstance(implementation, dict):
        _dependencies(implementation.get("dependencies"), document, (*keys, "implementation"), report)
        implementation = implementation.get("primary")
    if isinstance(implementation, dict):
        place = document.at(*keys, "implementation", "primary")
        _kind(f"operation {name}", implementation, catalogue, place, report)
        implementation = implementation.get("file")
    inputs = shared | mapping(
        definition.get("inputs"), f"inputs of operation {name}", document, (*keys, "inputs"), report
    )
    for key in inputs:
        if not _VARIABLE.fullmatch(key):
            place = document.at(*keys, "inputs", key)
            text = f"{key[:100]!r} is no name for an input of operation {name}"
            report.add(place, f"{text}; use letters, digits and _, and do not begin with ansible_")
    outputs = _outputs(definition.get("outputs"), attributes, document, (*keys, "outputs"), report)
    if not isinstance(implementation, str):
        report.add(document.at(*keys), f"operation {name} names no playbook as its implementation")
        return None
    if not implementation.endswith(_PLAYBOOKS):
        known = f"({', '.join(_PLAYBOOKS)}), and nothing else is run"
        place = document.at(*keys, "implementation")
        report.add(place, f"operation {name}: {implementation[:200]!r} is no playbook of Ansible {known}")
        return None
    playbook = document.beside(implementation)
    if playbook is None:
        report.add(document.at(*keys, "implementation"), document.lacks(implementation))
        return None
    return Operation(playbook, {key: _expression(value) for key, value in inputs.items()}, outputs)


def operations(
    interfaces: Any,
    attributes: dict[str, Any],
    catalogue: Catalogue,
    document: Document,
    keys: Keys,
    report: Report,
) -> dict[str, Operation]:
    """Read the interfaces of a node type or a node template.

    Args:
        interfaces: as written.
        attributes: that the node's type defines.
        catalogue: the types.
        document: where they stand.
        keys: the way to them.
        report: gets the complaints.

    Returns:
        The operations that can be run, by name.
    """
    found = {}
    for interface, content in mapping(interfaces, "interfaces", document, keys, report).items():
        place = (*keys, interface)
        if interface not in _STANDARD:
            report.add(document.at(*place), f"interface {interface} is not supported, only Standard is")
            continue
        standard = mapping(content, "Standard", document, place, report)
        shared = mapping(standard.get("inputs"), "inputs of Standard", document, (*place, "inputs"), report)
        # TOSCA 1.0 has no key `operations`: the operations stand in the interface itself
        flat = {
            key: value
            for key, value in standard.items()
            if key not in ("type", "inputs", "operations", "description", "notifications")
        }
        named = mapping(standard.get("operations"), "operations", document, (*place, "operations"), report)
        both = {name: (body, place) for name, body in flat.items()}
        both |= {name: (body, (*place, "operations")) for name, body in named.items()}
        for name, (body, above) in both.items():
            if name not in _OPERATIONS:
                hint = f"Standard has {', '.join(_OPERATIONS)}"
                report.add(document.at(*above, name), f"operation {name} is unknown; {hint}")
                continue
            operation = _operation(
                name, body, shared, attributes, catalogue, document, (*above, name), report
            )
            if operation:
                found[name] = operation
    return found


def artifacts(body: Any, catalogue: Catalogue, document: Document, keys: Keys, report: Report) -> None:
    """Complain about artifacts that are files and are not there.

    Args:
        body: the artifacts as written.
        catalogue: the types.
        document: where they stand.
        keys: the way to them.
        report: gets the complaints.
    """
    for name, artifact in mapping(body, "artifacts", document, keys, report).items():
        definition = {"file": artifact} if isinstance(artifact, str) else artifact
        place = document.at(*keys, name)
        if isinstance(definition, dict) and function(definition.get("file")):
            continue  # an image, such as the one of an input
        if not isinstance(definition, dict) or not isinstance(definition.get("file"), str):
            report.add(place, f"artifact {name} names no file")
            continue
        kind = _kind(f"artifact {name}", definition, catalogue, place, report)
        if kind is None:
            continue
        path = definition["file"]
        is_file = _endings(catalogue, kind) or any(
            catalogue.derives("artifact_types", kind, f"tosca.artifacts.{base}")
            for base in ("File", "Implementation")
        )
        if is_file and not definition.get("repository") and "://" not in path and not document.beside(path):
            report.add(place, f"artifact {name}: {document.lacks(path)}")


def _kind(
    what: str, definition: dict[str, Any], catalogue: Catalogue, place: Place, report: Report
) -> str | None:
    """The type of an artifact; complain about one that there is not, and about a file of another."""
    written = definition.get("type", "tosca.artifacts.File")
    kind = catalogue.named("artifact_types", written)
    if kind is None:
        known = catalogue.names("artifact_types")
        report.add(place, f"{what}: there is no type {written}; {near(written, known)}")
        return None
    endings, path = _endings(catalogue, kind), definition.get("file")
    if endings and isinstance(path, str) and not path.endswith(tuple(endings)):
        report.add(place, f"{what}: a {kind} ends in {' or '.join(endings)}, not as {path[:200]!r}")
    return kind


def _endings(catalogue: Catalogue, kind: str) -> list[str]:
    """How files of an artifact type end, by its ``file_ext`` (TOSCA Simple Profile 1.3, section 3.7.4.1)."""
    types = catalogue.names("artifact_types")
    extensions = (types[name].get("file_ext") for name in catalogue.ancestry("artifact_types", kind))
    found = next((listed for listed in extensions if isinstance(listed, list)), [])
    return [f".{str(extension).removeprefix('.')}" for extension in found]
