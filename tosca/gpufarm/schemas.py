# SPDX-License-Identifier: GPL-3.0-or-later
"""Complains about types that contradict themselves or name what is not there."""

from __future__ import annotations

from typing import Any

from gpufarm import values
from gpufarm.catalogue import Catalogue
from gpufarm.document import Document
from gpufarm.interfaces import Keys, artifacts, mapping
from gpufarm.problems import Report, near


def examine_schema(
    what: str, body: Any, catalogue: Catalogue, document: Document, keys: Keys, report: Report
) -> bool:
    """Complain about the definition of an input, a property or an attribute.

    Args:
        what: its name in a complaint.
        body: as written.
        catalogue: the types.
        document: where it stands.
        keys: the way to it.
        report: gets the complaints.

    Returns:
        Whether values can be checked by it.
    """
    if not isinstance(body, dict):
        report.add(document.at(*keys), f"{what} has to be a mapping with at least a type")
        return False
    known = (*values.SIMPLE, *catalogue.names("data_types"))
    schema, place = body, keys
    while schema:
        kind = schema.get("type")
        if kind not in known:
            report.add(
                document.at(*place, "type"), f"{what} has no type that TOSCA knows; {near(kind, known)}"
            )
            return False
        schema, place = values.entries(schema.get("entry_schema")), (*place, "entry_schema")
    if body.get("default") is None:
        return True
    try:
        wrong = values.fault(body, body["default"], catalogue.names("data_types"))
    except values.BadSchema as error:
        report.add(document.at(*keys, "constraints"), f"{what}: {error}")
        return False
    if wrong:
        report.add(document.at(*keys, "default"), f"the default of {what}: {wrong}")
    return not wrong


def _names_type(
    section: str, name: Any, what: str, catalogue: Catalogue, document: Document, keys: Keys, report: Report
) -> None:
    if catalogue.named(section, name) is None:
        hint = near(name, catalogue.names(section))
        report.add(document.at(*keys), f"{what} names {name}, which is no type; {hint}")


def _requirements(body: Any, catalogue: Catalogue, document: Document, keys: Keys, report: Report) -> None:
    if not isinstance(body, list):
        report.add(document.at(*keys), "requirements has to be a list")
        return
    for index, entry in enumerate(body):
        for name, definition in mapping(entry, "a requirement", document, (*keys, index), report).items():
            place = (*keys, index, name)
            written = mapping(definition, f"requirement {name}", document, place, report)
            if "capability" not in written:
                report.add(document.at(*place), f"requirement {name} names no capability")
            for key in ("capability", "node", "relationship"):
                target = written.get(key)
                if key == "relationship" and isinstance(target, dict):
                    target = target.get("type")
                if target is not None:
                    what = f"{key} of requirement {name}"
                    _names_type(f"{key}_types", target, what, catalogue, document, (*place, key), report)


def examine(catalogue: Catalogue, report: Report) -> None:
    """Complain about the types of a library.

    Args:
        catalogue: the types.
        report: gets the complaints.
    """
    for (section, name), document in catalogue.library.origin.items():
        definition = catalogue.names(section)[name]
        here: Keys = (section, name)
        parent = definition.get("derived_from")
        if parent is not None and parent not in values.SIMPLE:
            _names_type(
                section,
                parent,
                f"derived_from of {name}",
                catalogue,
                document,
                (*here, "derived_from"),
                report,
            )
            top = catalogue.ancestry(section, name)[-1]
            above = catalogue.named(section, catalogue.names(section)[top].get("derived_from"))
            if above == name:
                report.add(document.at(*here, "derived_from"), f"type {name} derives from itself")
        for key in ("properties", "attributes"):
            for member, body in mapping(definition.get(key), key, document, (*here, key), report).items():
                what = f"{'property' if key == 'properties' else 'attribute'} {member}"
                if key == "attributes" and isinstance(body, dict):
                    body = {name: item for name, item in body.items() if name != "default"}  # an expression
                examine_schema(what, body, catalogue, document, (*here, key, member), report)
        if section == "node_types":
            capabilities = mapping(
                definition.get("capabilities"), "capabilities", document, (*here, "capabilities"), report
            )
            for member, body in capabilities.items():
                place = (*here, "capabilities", member)
                if not isinstance(body, dict):
                    report.add(document.at(*place), f"capability {member}: write it as {{type: {body}}}")
                    continue
                what = f"capability {member}"
                _names_type("capability_types", body.get("type"), what, catalogue, document, place, report)
            if definition.get("requirements") is not None:
                place = (*here, "requirements")
                _requirements(definition["requirements"], catalogue, document, place, report)
            artifacts(definition.get("artifacts"), catalogue, document, (*here, "artifacts"), report)
        if section == "relationship_types":
            targets = definition.get("valid_target_types") or []
            for index, target in enumerate(targets if isinstance(targets, list) else [targets]):
                place = (*here, "valid_target_types", index)
                if catalogue.named("node_types", target) is None:
                    what = "valid_target_types"
                    _names_type("capability_types", target, what, catalogue, document, place, report)
