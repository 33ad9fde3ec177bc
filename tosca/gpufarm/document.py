# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files that remember their lines and columns, so that a complaint can say where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpufarm import dialect
from gpufarm.errors import BadTemplate
from gpufarm.problems import Place, Problem, Report

# Folders, separated by colons, from which templates may take types and playbooks beside their own.
FOLDERS = "GPUFARM_LIBRARY"
# Far above any template; it stops documents that grow without end through aliases of aliases.
MAX_NODES = 500_000
MAX_DEPTH = 100

# libyaml reads the same YAML several times faster where PyYAML was built with it
_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Fast):  # type: ignore[misc]  # whichever it is, it is a SafeLoader
    """Plain YAML without dates: in TOSCA 2024-01-01 is text or a version, never a date."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (PyYAML's own way to declare it)
        first: [(tag, expression) for tag, expression in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, eq=False)
class Document:
    """A YAML file.

    Attributes:
        path: the file.
        data: its content as plain Python values; a mapping.
        root: its content as nodes with positions.
        folders: the files that it names are in these, or are not taken; none if it names no files.
        text: its content as it stands in the file.
    """

    path: Path
    data: dict[str, Any]
    root: yaml.Node
    folders: tuple[Path, ...] = ()
    text: str = field(default="", repr=False)

    def at(self, *keys: str | int) -> Place:
        """Say where something stands.

        Args:
            keys: the way to it: keys of mappings and indices of sequences, from the outside to the inside.

        Returns:
            The place of the last key that is there.
        """
        node, place = self.root, Place(str(self.path))
        for key in keys:
            found = _step(node, key)
            if found is None:
                break
            mark, node = found
            place = _place(self.path, mark)
        return place

    def find(self, *names: str) -> Place | None:
        """Look for words of which nobody told where they stand.

        Args:
            names: words to look for as keys or values; the first inside the second, that inside the third ...

        Returns:
            The place of the first name that was found inside the ones after it; None if none was found.
        """
        area, place = self.root, None
        for name in reversed(names):
            for scalar, inside in _scalars(area):
                if scalar.value == name:
                    area, place = inside, _place(self.path, scalar)
                    break
        return place

    def beside(self, name: str) -> Path | None:
        """Find a file that the document names.

        Args:
            name: path relative to the document.

        Returns:
            The file, without symbolic links; None if there is none, or if it is outside of the folders.
        """
        path = self._resolved(name)
        try:
            return path if path and self._allows(path) and path.is_file() else None
        except OSError:  # too long
            return None

    def lacks(self, name: str) -> str:
        """Say why a file that the document names is not taken.

        Args:
            name: path relative to the document, for which `beside` finds nothing.

        Returns:
            A sentence.
        """
        path = self._resolved(name)
        if path is None or self._allows(path):
            return f"there is no file {name[:200]!r}"
        return (
            f"{name[:200]!r} is not in the folder of the template; "
            f"move it there, or name its folder in the variable {FOLDERS}"
        )

    def _allows(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _resolved(self, name: str) -> Path | None:
        try:
            return (self.path.parent / name).resolve()
        except (OSError, RuntimeError, ValueError):  # a circle of links, or no path at all
            return None


def _place(path: Path, node: yaml.Node) -> Place:
    return Place(str(path), node.start_mark.line + 1, node.start_mark.column + 1)


def _step(node: yaml.Node, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The node that says where a key or an item stands, and what stands below it."""
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode) and name.value == str(key):
                return name, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    return None


def _scalars(node: yaml.Node) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    """Every scalar with what stands below it: the value for a key, itself for a value."""
    if isinstance(node, yaml.ScalarNode):
        yield node, node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key, value
        for _key, value in node.value:
            yield from _scalars(value)


def _odd(node: yaml.ScalarNode) -> str:
    """Problems of a scalar that YAML allows."""
    if "\0" in node.value:
        return "contains a NUL character; remove it"
    if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float") and len(node.value) > 400:
        return "the number is too long; write it in quotes if it is a text"
    return ""


class _Growth(Exception):
    """The document is endless."""


def _check(root: yaml.Node, path: Path, report: Report) -> None:
    """Complain of what YAML allows and nobody means: a key twice, an alias inside itself, endless growth."""
    count = 0
    above: set[int] = set()
    twice = {id(node) for node in dialect.described_twice(root)}

    def visit(node: yaml.Node) -> None:
        nonlocal count
        count += 1
        if isinstance(node, yaml.ScalarNode):
            odd = _odd(node)
            if odd:
                report.add(_place(path, node), odd)
            return
        if id(node) in above:
            report.add(_place(path, node), "the alias contains itself; write the value out")
            raise _Growth
        if count > MAX_NODES or len(above) > MAX_DEPTH:
            report.add(_place(path, node), "the document is too large or too deeply nested")
            raise _Growth
        above.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                visit(item)
        elif isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in list(node.value):
                if isinstance(key, yaml.ScalarNode):
                    harmless = key.value == "description" and id(node) in twice
                    if key.value in seen and not harmless:
                        text = f'the key "{key.value}" stands here a second time; remove one'
                        report.add(_place(path, key), text)
                        node.value.remove((key, value))  # the rest is checked by the first
                    seen.add(key.value)
                visit(key)
                visit(value)
        above.discard(id(node))

    try:
        visit(root)
    except _Growth:
        report.conclude()


def _deep(text: str) -> bool:
    """Whether the text nests so deeply that libyaml's composer would overflow its stack.

    It counts what can open a level, so it is true for some harmless documents of that many levels in all.
    """
    return sum(text.count(sign) for sign in ("[", "{", "- ", "? ")) > 20_000


def read(
    path: Path, report: Report | None = None, folders: tuple[Path, ...] = (), text: str = ""
) -> Document:
    """Read a YAML file whose content is a mapping.

    Args:
        path: the file.
        report: gets the complaints with which the document can be understood all the same; without one they
            are fatal.
        folders: where the files are that it may name.
        text: content to take for that of the file; empty to read the file.

    Returns:
        The document.

    Raises:
        BadTemplate: the file cannot be read, is no YAML, says something twice, or is no mapping.
    """

    try:
        text = text or path.read_text(encoding="utf-8")
    except OSError as error:
        raise _refusal(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refusal(path, "is no text in UTF-8") from error
    found = Report()
    data, root = _parsed(text, path, found)
    if report is None:
        found.conclude()
    else:
        report.problems.extend(found.problems)
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise _refusal(path, "is no mapping of names to values")
    return Document(path, data, root, folders, text)


def value(text: str) -> Any:
    """Read a value that was typed.

    Args:
        text: a value in YAML.

    Returns:
        The value.

    Raises:
        BadTemplate: it is no YAML, says something twice, or is too large.
    """
    found = Report()
    data, _root = _parsed(text, Path("value"), found)
    found.conclude()
    return data


def _refusal(path: Path, text: str, line: int = 0, column: int = 0) -> BadTemplate:
    return BadTemplate([Problem(Place(str(path), line, column), " ".join(text.split()))])


def _parsed(text: str, path: Path, found: Report) -> tuple[Any, yaml.Node]:
    """The content of a text in YAML, and its nodes."""
    try:
        if _deep(text):
            for depth, _event in _levels(text):
                if depth > MAX_DEPTH:
                    raise _refusal(path, "the document is too deeply nested")
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise _refusal(path, "is empty")
        _check(root, path, found)
        data = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        sentence = f"is no valid YAML: {error.problem or error.context}"
        if isinstance(error, yaml.constructor.ConstructorError) and "tag" in str(error.problem):
            # what follows may be a password, so it is not repeated
            sentence = 'a value begins with "!", which has a meaning of its own in YAML; write it in quotes'
        raise _refusal(path, sentence, *((mark.line + 1, mark.column + 1) if mark else ())) from error
    except RecursionError as error:
        raise _refusal(path, "the document is too deeply nested") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        first = str(error).partition("\n")[0] or type(error).__name__
        raise _refusal(path, f"is no valid YAML: {first}") from error
    return data, root


def _levels(text: str) -> Iterator[tuple[int, yaml.Event]]:
    """Every event of the document with how deep it stands."""
    depth = 0
    for event in yaml.parse(text, Loader=_Fast):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        yield depth, event
