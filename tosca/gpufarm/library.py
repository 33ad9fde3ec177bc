# SPDX-License-Identifier: GPL-3.0-or-later
"""A template together with the type files that it imports, as one document.

tosca-parser looks for an import in the current directory before it looks beside the importing file, and does
not tell which file a type came from. Implementations are relative to that file: imports are followed here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufarm import document
from gpufarm.document import Document
from gpufarm.errors import BadInput

SECTIONS = (
    "artifact_types",
    "capability_types",
    "data_types",
    "group_types",
    "interface_types",
    "node_types",
    "policy_types",
    "relationship_types",
)


@dataclass
class Library:
    """A template and all that it imports.

    Attributes:
        template: the template's own document.
        types: definition of each type, by section and name.
        origin: the document that each type stands in.
    """

    template: Document
    types: dict[str, dict[str, Any]] = field(default_factory=lambda: {section: {} for section in SECTIONS})
    origin: dict[str, Document] = field(default_factory=dict)

    def flat(self) -> dict[str, Any]:
        """The template with the definitions of all types in it and without imports.

        Returns:
            A document for tosca-parser; its values are shared with the library.
        """
        merged = {key: value for key, value in self.template.data.items() if key != "imports"}
        merged |= {section: types for section, types in self.types.items() if types}
        return merged

    def where(self, *names: str) -> str:
        """Say where something stands, in the template or else in a file that it imports.

        Args:
            names: as for `Document.where`.

        Returns:
            ``FILE:LINE``, or the template's path.
        """
        documents = [self.template, *dict.fromkeys(self.origin.values())] if names else []
        found = (document.where(*names) for document in documents)
        return next((place for place in found if place.rpartition(":")[2].isdigit()), str(self.template.path))


def _imported(parent: Document, entry: Any) -> Path:
    """The file that an import names: a path, ``{file: path}`` or ``{name: path or {file: path}}``."""
    if isinstance(entry, dict) and "file" in entry:
        entry = entry["file"]
    elif isinstance(entry, dict) and len(entry) == 1:
        (entry,) = entry.values()
        if isinstance(entry, dict):
            entry = entry.get("file")
    if not isinstance(entry, str):
        raise BadInput(f"{parent.where('imports')}: an import has to be the path of a file")
    if "://" in entry:
        raise BadInput(f"{parent.where(entry)}: {entry} is on the network; import a copy beside the template")
    return parent.beside(entry)


def _collect(library: Library, current: Document, seen: set[Path]) -> None:
    """Add the types of a document, then those of its imports."""
    for section in SECTIONS:
        types = current.data.get(section) or {}
        if not isinstance(types, dict):
            raise BadInput(
                f"{current.where(section)}: {section} has to be a mapping of type names to definitions"
            )
        for name, definition in types.items():
            if not isinstance(name, str) or not isinstance(definition, dict):
                raise BadInput(
                    f"{current.where(str(name))}: the definition of type {name} has to be a mapping"
                )
            if name in library.types[section]:
                other = library.origin[name].path
                raise BadInput(
                    f"{current.where(name)}: type {name} is defined in {other} already; remove one"
                )
            library.types[section][name] = definition
            library.origin[name] = current
    imports = current.data.get("imports") or []
    if not isinstance(imports, list):
        raise BadInput(f"{current.where('imports')}: imports has to be a list of files")
    for entry in imports:
        path = _imported(current, entry)
        if path not in seen:
            seen.add(path)
            _collect(library, document.read(path), seen)


def load(path: Path) -> Library:
    """Read a template and its imports.

    Args:
        path: the template.

    Returns:
        The library.

    Raises:
        BadInput: a file cannot be read, or is no TOSCA at first sight.
    """
    template = document.read(path)
    library = Library(template)
    _collect(library, template, {path.resolve()})
    return library
