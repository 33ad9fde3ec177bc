# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files that remember their lines, so that a complaint can say where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpufarm.errors import BadInput

# Far above any template; it stops documents that grow without end through aliases of aliases.
MAX_NODES = 100_000
MAX_DEPTH = 100


class _Loader(yaml.SafeLoader):
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
    """

    path: Path
    data: dict[str, Any]
    root: yaml.Node

    def where(self, *names: str) -> str:
        """Say where something stands.

        Args:
            names: words to look for as keys or values; the first inside the second, that inside the third ...

        Returns:
            ``FILE:LINE`` of the first name that was found inside the ones after it, or ``FILE``.
        """
        area = self.root
        line = None
        for name in reversed(names):
            for scalar, inside in _scalars(area):
                if scalar.value == name:
                    line = scalar.start_mark.line + 1
                    area = inside
                    break
        return f"{self.path}:{line}" if line else str(self.path)

    def beside(self, name: str) -> Path:
        """Find a file that the document names.

        Args:
            name: path relative to the document.

        Returns:
            The file.

        Raises:
            BadInput: there is no such file.
        """
        path = self.path.parent / name
        try:
            if path.is_file():
                return path.resolve()
        except (OSError, ValueError):  # too long, or with characters that no path can have
            pass
        raise BadInput(f"{self.where(name)}: there is no file {name[:200]!r}")


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


def _check(node: yaml.Node, path: Path, above: tuple[int, ...], count: list[int]) -> None:
    """Refuse what YAML allows and nobody means: a key twice, an alias inside itself, endless growth."""
    where = f"{path}:{node.start_mark.line + 1}"
    if id(node) in above:
        raise BadInput(f"{where}: the alias contains itself; write the value out")
    count[0] += 1
    if count[0] > MAX_NODES or len(above) > MAX_DEPTH:
        raise BadInput(f"{where}: the document is too large or too deeply nested")
    below = (*above, id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check(item, path, below, count)
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise BadInput(
                        f'{path}:{line}: the key "{key.value}" stands here a second time; remove one'
                    )
                seen.add(key.value)
            _check(key, path, below, count)
            _check(value, path, below, count)


def read(path: Path) -> Document:
    """Read a YAML file whose content is a mapping.

    Args:
        path: the file.

    Returns:
        The document.

    Raises:
        BadInput: the file cannot be read, is no YAML, or is no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: is no text in UTF-8") from error
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise BadInput(f"{path}: is empty")
        _check(root, path, (), [0])
        data = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadInput(f"{path}{line}: is no valid YAML: {error.problem or error.context}") from error
    except RecursionError as error:
        raise BadInput(f"{path}: the document is too deeply nested") from error
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).partition("\n")[0] or type(error).__name__
        raise BadInput(f"{path}: is no valid YAML: {first}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise BadInput(f"{path}: is no mapping of names to values")
    return Document(path, data, root)
