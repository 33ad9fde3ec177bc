# SPDX-License-Identifier: GPL-3.0-or-later
"""All types that a template can use, its own and those of TOSCA, with what they inherit."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from toscaparser.elements.entity_type import EntityType

from gpufarm.document import Document
from gpufarm.library import Library

_PREFIXES = {
    "node_types": "tosca.nodes.",
    "capability_types": "tosca.capabilities.",
    "relationship_types": "tosca.relationships.",
    "data_types": "tosca.datatypes.",
    "artifact_types": "tosca.artifacts.",
    "interface_types": "tosca.interfaces.",
    "policy_types": "tosca.policies.",
}


@functools.cache
def _standard() -> dict[str, dict[str, Any]]:
    """The types of TOSCA Simple Profile 1.x, chapter 5, in tosca-parser's copy, by section and name."""
    found: dict[str, dict[str, Any]] = {section: {} for section in _PREFIXES}
    for name, definition in EntityType.TOSCA_DEF.items():
        for section, prefix in _PREFIXES.items():
            if name.startswith(prefix):
                found[section][name] = definition or {}
    return found


def idle(definition: Any) -> bool:
    """Tell whether a definition itself says that what it defines does nothing here.

    Args:
        definition: of a property or a policy.

    Returns:
        True if its metadata has ``effect: none``.
    """
    metadata = definition.get("metadata") if isinstance(definition, dict) else None
    return isinstance(metadata, dict) and metadata.get("effect") == "none"


class Catalogue:
    """The types of a library over those of TOSCA.

    Malformed definitions count as missing: the examination of the types reports them.
    """

    def __init__(self, library: Library) -> None:
        """Take a library.

        Args:
            library: the template and its imports.
        """
        self.library = library
        self._types: dict[str, dict[str, Any]] = {
            section: {**_standard().get(section, {}), **types} for section, types in library.types.items()
        }
        self._ancestry: dict[tuple[str, str], tuple[str, ...]] = {}
        self._members: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._requirements: dict[str, dict[str, dict[str, Any]]] = {}

    def names(self, section: str) -> Mapping[str, Any]:
        """List types.

        Args:
            section: such as ``node_types``.

        Returns:
            Every definition by name.
        """
        return self._types[section]

    def named(self, section: str, name: Any) -> str | None:
        """Find a type, also by its short name (TOSCA Simple Profile 1.3, section 5.2).

        Args:
            section: such as ``node_types``.
            name: such as ``tosca.nodes.Compute``, ``tosca:Compute`` or ``Compute``.

        Returns:
            The full name; None if there is no such type.
        """
        if not isinstance(name, str):
            return None
        short = f"{_PREFIXES.get(section, 'tosca.')}{name.removeprefix('tosca:')}"
        return next((found for found in (name, short) if found in self._types[section]), None)

    def origin(self, section: str, name: str) -> Document | None:
        """Find the file of a type.

        Args:
            section: such as ``node_types``.
            name: full name.

        Returns:
            The document; None for a type of TOSCA.
        """
        return self.library.origin.get((section, name))

    def ancestry(self, section: str, name: str) -> tuple[str, ...]:
        """List a type and its ancestors.

        Args:
            section: such as ``node_types``.
            name: full name.

        Returns:
            Full names, nearest first; a circle ends where it closes.
        """
        key = (section, name)
        if key not in self._ancestry:
            found: list[str] = []
            current: str | None = name
            while current is not None and current in self._types[section] and current not in found:
                found.append(current)
                current = self.named(section, self._types[section][current].get("derived_from"))
            self._ancestry[key] = tuple(found)
        return self._ancestry[key]

    def derives(self, section: str, name: str | None, ancestor: str | None) -> bool:
        """Tell whether a type is another or derives from it.

        Args:
            section: such as ``node_types``.
            name: full name of the type.
            ancestor: full name of the other.

        Returns:
            True if it does.
        """
        return name is not None and ancestor in self.ancestry(section, name)

    def members(self, section: str, name: str, key: str) -> dict[str, Any]:
        """Collect what a type and its ancestors define.

        Args:
            section: such as ``node_types``.
            name: full name of the type.
            key: ``properties``, ``attributes`` or ``capabilities``.

        Returns:
            The definitions by name; that of the nearest type counts.
        """
        place = (section, name, key)
        if place not in self._members:
            found: dict[str, Any] = {}
            for current in reversed(self.ancestry(section, name)):
                own = self._types[section][current].get(key)
                for member, definition in own.items() if isinstance(own, dict) else ():
                    if isinstance(member, str) and isinstance(definition, dict):
                        found[member] = definition
            self._members[place] = found
        return self._members[place]

    def properties_of(self, written: str) -> dict[str, Any]:
        """Collect the properties of a type of nodes.

        Args:
            written: its name, in full or short.

        Returns:
            Their schemas by name; none if there is no such type.
        """
        return self.members("node_types", self.named("node_types", written) or "", "properties")

    def requirements(self, name: str) -> dict[str, dict[str, Any]]:
        """Collect the requirements of a node type and its ancestors.

        Args:
            name: full name of the type.

        Returns:
            The definitions by name; that of the nearest type counts.
        """
        if name not in self._requirements:
            found: dict[str, dict[str, Any]] = {}
            for current in reversed(self.ancestry("node_types", name)):
                own = self._types["node_types"][current].get("requirements")
                for entry in own if isinstance(own, list) else ():
                    for requirement, definition in entry.items() if isinstance(entry, dict) else ():
                        if isinstance(requirement, str) and isinstance(definition, dict):
                            found[requirement] = definition
            self._requirements[name] = found
        return self._requirements[name]

    def provides(self, name: str, capability: str | None) -> bool:
        """Tell whether nodes of a type have a capability.

        Args:
            name: full name of the node type.
            capability: full name of a capability type.

        Returns:
            True if a capability of the type is of this type or one that derives from it.
        """
        return any(
            self.derives("capability_types", self.named("capability_types", own.get("type")), capability)
            for own in self.members("node_types", name, "capabilities").values()
        )
