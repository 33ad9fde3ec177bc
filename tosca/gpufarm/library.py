# SPDX-License-Identifier: GPL-3.0-or-later
"""A template together with the type files that it imports, as one document.

tosca-parser looks for an import in the current directory before it looks beside the importing file, and does
not tell which file a type came from. Implementations are relative to that file: imports are followed here.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufarm import collection, dialect, document
from gpufarm.document import Document
from gpufarm.errors import BadTemplate, GpufarmError
from gpufarm.problems import Place, Report

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
        origin: the document that each type stands in, by section and name.
        complete: whether all that is imported could be read.
        indigo: whether it imports a library of INDIGO's.
    """

    template: Document
    types: dict[str, dict[str, Any]] = field(default_factory=lambda: {section: {} for section in SECTIONS})
    origin: dict[tuple[str, str], Document] = field(default_factory=dict)
    complete: bool = True
    indigo: bool = False

    def flat(self) -> dict[str, Any]:
        """The template with the definitions of all types in it and without imports.

        Returns:
            A document for tosca-parser; its values are shared with the library.
        """
        merged = {key: value for key, value in self.template.data.items() if key != "imports"}
        merged |= {section: types for section, types in self.types.items() if types}
        return merged

    def find(self, *names: str) -> Place:
        """Look for words, in the template or else in a file that it imports.

        Args:
            names: as for `Document.find`.

        Returns:
            The place, or the template as a whole.
        """
        documents = [self.template, *dict.fromkeys(self.origin.values())] if names else []
        places = (document.find(*names) for document in documents)
        return next((place for place in places if place), Place(str(self.template.path)))


def beside(parent: Document, entry: str) -> Path | None:
    """Find the file that an import names.

    Args:
        parent: the importing file.
        entry: a path relative to it, or the URL of a library of INDIGO's, for which there is a file here.

    Returns:
        The file; None if there is none.

    Raises:
        GpufarmError: the collection, which has that file, is not there.
    """
    if dialect.LIBRARY.fullmatch(entry):
        return collection.root() / "tosca" / "types" / "indigo_types.yaml"
    return parent.beside(entry)


def _imported(parent: Document, entry: Any, place: Place, report: Report) -> Path | None:
    """The file that an import names: a path, ``{file: path}`` or ``{name: path or {file: path}}``."""
    if isinstance(entry, dict) and "file" in entry:
        entry = entry["file"]
    elif isinstance(entry, dict) and len(entry) == 1:
        (entry,) = entry.values()
        if isinstance(entry, dict):
            entry = entry.get("file")
    if not isinstance(entry, str):
        report.add(place, "an import has to be the path of a file")
        return None
    path = beside(parent, entry)
    if path is None and "://" in entry:
        report.add(place, f"{entry} is on the network; import a copy beside the template")
        return None
    if path is None:
        report.add(place, f"{parent.lacks(entry)}{_collection_lacks()}")
    return path


def _collection_lacks() -> str:
    """Return the end of a sentence that says how to install the collection; empty if it is installed."""
    try:
        collection.root()
    except GpufarmError as error:
        return f"; {error.message}"
    return ""


def _collect(library: Library, current: Document, seen: set[Path], report: Report) -> None:
    """Add the types of a document, then those of its imports."""
    for section in SECTIONS:
        types = current.data.get(section) or {}
        if not isinstance(types, dict):
            report.add(current.at(section), f"{section} has to be a mapping of type names to definitions")
            continue
        for name, definition in types.items():
            place = current.at(section, str(name))
            if not isinstance(name, str) or not isinstance(definition, dict):
                report.add(place, f"the definition of type {name} has to be a mapping")
            elif name in library.types[section]:
                other = library.origin[section, name].at(section, name)
                report.add(place, f"type {name} is defined at {other} already; remove one")
            else:
                library.types[section][name] = definition
                library.origin[section, name] = current
    imports = current.data.get("imports") or []
    if not isinstance(imports, list):
        report.add(current.at("imports"), "imports has to be a list of files")
        return
    for index, entry in enumerate(imports):
        path = _imported(current, entry, current.at("imports", index), report)
        if path and path not in seen:
            seen.add(path)
            try:
                _collect(library, document.read(path, report, current.folders), seen, report)
            except BadTemplate as error:
                report.problems.extend(error.problems)
                library.complete = False
        elif path is None:
            library.complete = False


def folders(path: Path) -> tuple[Path, ...]:
    """List where the files are that a template and its types may name: operations run on the controller.

    Args:
        path: the template.

    Returns:
        Its own folder, the collection's types and playbooks, and what `document.FOLDERS` names.
    """
    found = [path.parent, *map(Path, filter(None, os.environ.get(document.FOLDERS, "").split(":")))]
    with contextlib.suppress(GpufarmError):  # a template of one's own types needs no collection
        found.append(collection.root() / "tosca")
    return tuple(folder.resolve() for folder in found)


def load(path: Path, report: Report, text: str = "") -> Library:
    """Read a template and its imports.

    Args:
        path: the template.
        report: gets the complaints about what is imported.
        text: content to take for that of the template's file; empty to read the file.

    Returns:
        The library, as far as it can be read.

    Raises:
        BadTemplate: the template itself cannot be read.
    """
    template = document.read(path, report, folders(path), text)
    indigo = dialect.imports_library(template.root)
    if indigo:
        template = replace(template, data=dialect.inputs(template.data, template.root))
    library = Library(template, indigo=indigo)
    _collect(library, template, {path.resolve()}, report)
    return library
