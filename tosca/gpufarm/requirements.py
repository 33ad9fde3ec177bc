# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the requirements of a node template and complains about those that cannot be met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from gpufarm.catalogue import Catalogue
from gpufarm.document import Document
from gpufarm.interfaces import Keys, mapping
from gpufarm.problems import Report, near


def _target_types(catalogue: Catalogue, relationship: str | None) -> list[str]:
    """Targets of a relationship: the nearest ``valid_target_types`` (TOSCA 1.3, section 3.7.10)."""
    if relationship is None:
        return []
    for name in catalogue.ancestry("relationship_types", relationship):
        found = catalogue.names("relationship_types")[name].get("valid_target_types")
        if found:
            return [str(entry) for entry in (found if isinstance(found, list) else [found])]
    return []


def _leads_to(catalogue: Catalogue, kind: str, wanted: str) -> bool:
    """Whether nodes of a type have the capability, or are of the node type, that is wanted."""
    capability = catalogue.named("capability_types", wanted)
    if capability:
        return catalogue.provides(kind, capability)
    return catalogue.derives("node_types", kind, catalogue.named("node_types", wanted))


def _mismatch(catalogue: Catalogue, definition: Mapping[str, Any], written: Any, kind: str) -> str:
    """Why a node of a type cannot meet a requirement; empty if it can."""
    wanted = catalogue.named("node_types", definition.get("node"))
    if wanted and not catalogue.derives("node_types", kind, wanted):
        return f"it has to be a {wanted}"
    capability = catalogue.named("capability_types", definition.get("capability"))
    if capability and not catalogue.provides(kind, capability):
        return f"it has to have the capability {capability}"
    chosen = written.get("capability") if isinstance(written, dict) else None
    if chosen is not None:
        own = catalogue.members("node_types", kind, "capabilities")
        if str(chosen) not in own and not _leads_to(catalogue, kind, str(chosen)):
            return f"it has no capability {chosen}; {near(chosen, own)}"
    relationship = definition.get("relationship")
    if isinstance(relationship, dict):
        relationship = relationship.get("type")
    targets = _target_types(catalogue, catalogue.named("relationship_types", relationship))
    if targets and not any(_leads_to(catalogue, kind, target) for target in targets):
        return f"{relationship} leads to {', '.join(targets)} only"
    return ""


def _bounds(definition: Mapping[str, Any]) -> tuple[int, int | None]:
    """How often a requirement is met, at least and at most.

    At least once without a word about it (TOSCA 1.3, section 3.7.3); tosca-parser sets no upper bound then.
    """
    low, high = 1, None
    written = definition.get("occurrences")
    if isinstance(written, list) and len(written) == 2:
        low = written[0] if isinstance(written[0], int) else 1
        high = written[1] if isinstance(written[1], int) else None
    return low, high


def requirements(
    name: str,
    body: Mapping[str, Any],
    kinds: Mapping[str, str],
    untyped: Collection[str],
    catalogue: Catalogue,
    document: Document,
    report: Report,
) -> list[tuple[str, str]]:
    """Read the requirements of a node.

    Args:
        name: of the node.
        body: of the node, as written.
        kinds: full name of the type of each node of which the type is known.
        untyped: the other nodes; the one who found their types wrong has complained.
        catalogue: the types.
        document: the template.
        report: gets the complaints.

    Returns:
        Pairs of a requirement and the node that fulfils it.
    """
    keys: Keys = ("topology_template", "node_templates", name, "requirements")
    entries = body.get("requirements") or []
    if not isinstance(entries, list):
        report.add(document.at(*keys), "requirements has to be a list")
        return []
    known = catalogue.requirements(kinds[name])
    found = []
    for index, entry in enumerate(entries):
        for requirement, written in mapping(entry, "a requirement", document, (*keys, index), report).items():
            place: Keys = (*keys, index, requirement)
            target = written.get("node") if isinstance(written, dict) else written
            if isinstance(written, dict) and "node_filter" in written:
                text = f"node_filter of requirement {requirement} is not supported; name a node instead"
                report.add(document.at(*place, "node_filter"), text)
            if requirement not in known:
                text = f"node {name} of type {kinds[name]} has no requirement {requirement}"
                report.add(document.at(*place), f"{text}; {near(requirement, known)}")
            if isinstance(target, str) and target in untyped:
                continue
            if not isinstance(target, str) or target not in kinds:
                if isinstance(written, dict) and target is None:
                    hint = "write its name"
                elif isinstance(target, str) and catalogue.named("node_types", target):
                    hint = "that is a type"
                else:
                    hint = near(target, kinds)
                text = f"requirement {requirement} of node {name} has to name a node of the template"
                report.add(document.at(*place), f"{text}, not {target}; {hint}")
                continue
            if requirement in known:
                why = _mismatch(catalogue, known[requirement], written, kinds[target])
                if why:
                    text = f"requirement {requirement} of node {name} cannot be met by {target}"
                    report.add(document.at(*place), f"{text}, a {kinds[target]}: {why}")
            found.append((requirement, target))
    counted = Counter(requirement for entry in entries if isinstance(entry, dict) for requirement in entry)
    for requirement, definition in known.items():
        low, high = _bounds(definition)
        number = counted[requirement]
        if number < low:
            text = f"node {name} needs the requirement {requirement}"
            times = f", {low} times" if low > 1 else ""
            wanted = definition.get("node") or definition.get("capability")
            report.add(document.at(*keys[:3]), f"{text}{times}; add it and name a {wanted}")
        elif high is not None and number > high:
            text = f"node {name} has the requirement {requirement} {number} times"
            report.add(document.at(*keys), f"{text}, at most {high} allowed; remove one")
    return found
