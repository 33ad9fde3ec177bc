# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of a template: placement on machines, settings of nodes, scaling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpufarm.catalogue import Catalogue, idle
from gpufarm.document import Document
from gpufarm.interfaces import Keys, mapping
from gpufarm.problems import Report, near
from gpufarm.topology import Node, Policy

PLACEMENT = "tosca.policies.gpufarm.Placement"
SCALING = "tosca.policies.gpufarm.Scaling"
# Its properties are set on the targets, where they have the same names.
SETTINGS = "tosca.policies.gpufarm.Settings"
MEANINGFUL = {PLACEMENT, SCALING, SETTINGS}
KEYS: Keys = ("topology_template", "policies")
_POLICY_KEYS = ("type", "description", "metadata", "targets", "properties")


def entries(written: Any, document: Document, report: Report) -> Iterator[tuple[str, Any, Keys]]:
    """List the policies of a template, a list of maps with one entry (TOSCA Simple Profile 1.3, 3.8.6).

    Args:
        written: the section.
        document: the template.
        report: gets the complaints.

    Yields:
        The name and the definition of each, and where it stands.
    """
    if not isinstance(written or [], list):
        report.add(document.at(*KEYS), "policies has to be a list, each entry a name with its definition")
        return
    for index, entry in enumerate(written or []):
        keys: Keys = (*KEYS, index)
        for name, body in mapping(entry, "a policy", document, keys, report).items():
            yield str(name), body, (*keys, name)


def _is_idle(kind: str, catalogue: Catalogue) -> bool:
    """Whether a type says of all its properties that they do nothing here, as tosca-parser takes no more."""
    properties = catalogue.members("policy_types", kind, "properties")
    return bool(properties) and all(map(idle, properties.values()))


def understood(
    name: str,
    body: Mapping[str, Any],
    nodes: Mapping[str, Node],
    catalogue: Catalogue,
    document: Document,
    keys: Keys,
    report: Report,
) -> tuple[str, ...]:
    """Complain about a policy that would do nothing.

    Args:
        name: of the policy.
        body: its definition.
        nodes: of the template.
        catalogue: the types.
        document: the template.
        keys: where the policy stands.
        report: gets the complaints.

    Returns:
        Its type and the ancestors of that; empty if it has no type that means anything here.
    """
    for key in body:
        if key not in _POLICY_KEYS:
            hint = near(key, _POLICY_KEYS)
            report.add(document.at(*keys, key), f"{key} of policy {name} is not supported; {hint}")
    kind = catalogue.named("policy_types", body.get("type"))
    known = [
        entry
        for entry in catalogue.names("policy_types")
        if MEANINGFUL & set(catalogue.ancestry("policy_types", entry)[1:]) | ({entry} & {PLACEMENT, SCALING})
        or _is_idle(entry, catalogue)
    ]
    if kind is None or kind not in known:
        text = f"policy {name} has no type that does anything here; {near(body.get('type'), known)}"
        report.add(document.at(*keys, "type"), text)
        return ()
    targets = body.get("targets")
    if not isinstance(targets, list) or not targets:
        report.add(document.at(*keys), f"policy {name} has no targets; list the nodes that it is for")
        targets = []
    ancestry = catalogue.ancestry("policy_types", kind)
    for index, target in enumerate(targets):
        place = document.at(*keys, "targets", index)
        node = nodes.get(target) if isinstance(target, str) else None
        if node is None:
            report.add(place, f"policy {name} is for {target}, which is no node; {near(target, nodes)}")
        elif (PLACEMENT in ancestry or SCALING in ancestry) and not node.is_machine:
            report.add(place, f"policy {name} is for machines, but {target} is none")
        for key in body.get("properties") or () if SETTINGS in ancestry else ():
            if node and key not in catalogue.members("node_types", node.type, "properties"):
                report.add(place, f"policy {name} sets {key}, which node {target} does not have")
    return ancestry


def applied(
    policy: Policy,
    nodes: Mapping[str, Node],
    written: Mapping[str, Any],
    document: Document,
    keys: Keys,
    report: Report,
) -> dict[str, Node]:
    """Give the targets of a policy what it says.

    Args:
        policy: the policy.
        nodes: of the template.
        written: their definitions.
        document: the template.
        keys: where the policy stands.
        report: gets a complaint if a node says something else itself, or another policy does.

    Returns:
        The nodes, changed.
    """
    found = dict(nodes)
    for target in policy.targets:
        node = found.get(target)
        if node is None:
            continue
        if PLACEMENT in policy.kinds:
            if node.among is not None:
                report.add(document.at(*keys), f"two policies say where {target} is placed; remove one")
            node = replace(node, among=policy.properties.get("machines"))
        if SETTINGS in policy.kinds:
            body = written[target].get("properties")
            own = set(body) if isinstance(body, dict) else set()
            for key in sorted(policy.properties.keys() & (own | node.by_policy)):
                report.add(document.at(*keys), f"{key} of node {target} is said elsewhere too; remove one")
            node = replace(
                node,
                properties=node.properties | policy.properties,
                by_policy=node.by_policy | set(policy.properties),
            )
        found[target] = node
    return found
