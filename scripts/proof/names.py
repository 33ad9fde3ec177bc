"""Objects named in a file: roles, plugins, playbooks, Python modules, paths, node types."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from proof.tree import Tree

COLLECTION = "gpufarm.cluster."
COLLECTION_NAME = re.compile(r"\bgpufarm\.cluster\.([a-z_]\w*)")
PYTHON_NAME = re.compile(r"\b(?:lab|gpufarm(?!\.cluster\b))(?:\.\w+)+")
# The project's commands by their paths, and the modules behind them (pyproject.toml).
COMMAND = re.compile(r"\bbin/(lab|gpufarm)(?![\w-])")
COMMANDS = {"lab": "lab.cli", "gpufarm": "gpufarm.cli"}
PATH = re.compile(r"[\w.@+/-]+")
# Lookups that return the files of a Python project; the words in quotes beside it name projects.
PROJECT_LOOKUP = f"{COLLECTION}python_project"
QUOTED = re.compile(r"'(\w+)'")
# The filter that imports the module of a role, which its table names, when it is needed.
PLAN = "plugins/filter/plan.py"
TABLE = "MODULES"
# Plugins that have no name in the collection.
UNNAMED = {"plugins/module_utils", "plugins/plugin_utils", "plugins/doc_fragments"}
# Folders that Python finds modules in beside those of packages.
PYTHON_FOLDERS = ("", "tests", "tosca", "molecule/shared/fixtures", "tests/unit/plugins")
# Files that Ansible reads of a role for each of its entry points.
WHOLE = ("meta/main", "meta/argument_specs", "defaults/main", "vars/main", "handlers/main")
PARTS = ("tasks", "files", "templates", "vars")


@dataclass(frozen=True)
class Reference:
    """A file that another one names.

    Attributes:
        path: path of the file from the root of the repository.
        followed: whether what that file names is needed too; not of files that are only read or copied.
        groups: groups of machines without which the file is not used; empty where it is used in any case.
    """

    path: str
    followed: bool = True
    groups: frozenset[str] = frozenset()


class Names:
    """Finds what names mean in one state of the repository.

    Args:
        tree: the files of that state.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def roles(self) -> frozenset[str]:
        return frozenset(path.split("/")[1] for path in self.tree.folders if path.startswith("roles/"))

    def role(self, name: str, entry: str = "main") -> Iterator[Reference]:
        """Find the files of a role.

        Args:
            name: the role, with or without the name of the collection.
            entry: the file of tasks that is run. Only of roles that others include, whose names begin with an
                underscore, are these files independent of each other; Ansible reads what is said of the role
                as a whole with each of them.
        """
        folder = f"roles/{name.removeprefix(COLLECTION)}"
        tasks = f"{folder}/tasks/{entry}.yml"
        if folder.startswith("roles/_") and tasks in self.tree.texts:
            yield from self.files([tasks, *(f"{folder}/{path}.yml" for path in WHOLE)])
        else:
            yield from (Reference(path) for path in self.tree.below(folder) if not path.endswith(".md"))
            if planner := self._planners.get(folder.removeprefix("roles/")):
                yield from self.module(f"plugins.module_utils.{planner}", PLAN)

    @cached_property
    def _planners(self) -> dict[str, str]:
        """The module that plans for each role, from the table in the filter."""
        for node in ast.parse(self.tree.texts.get(PLAN, "")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == TABLE:
                return dict(ast.literal_eval(node.value))
        return {}

    def plugin(self, name: str) -> Iterator[Reference]:
        """Find modules and other plugins by their name in the collection."""
        yield from self.files(f"{kind}/{name}.py" for kind in self._kinds)

    @cached_property
    def _kinds(self) -> list[str]:
        """Folders of plugins."""
        kinds = {"/".join(path.split("/")[:2]) for path in self.tree.below("plugins")}
        return sorted(kinds - UNNAMED)

    def playbook(self, name: str) -> Iterator[Reference]:
        """Find a playbook by its name, with or without that of the collection."""
        yield from self.files([f"playbooks/{name.removeprefix(COLLECTION)}.yml"])

    def files(self, paths: Iterable[str]) -> Iterator[Reference]:
        """Return those of some paths that are files."""
        yield from (Reference(path) for path in paths if path in self.tree.texts)

    def folder(self, path: str) -> Iterator[Reference]:
        """Return the files of a folder that is read or copied as a whole.

        Folders that hold a whole layer are left out, as a path to one is only the beginning of another path.
        References in the files are ignored, except those of inventories, which may be programs.
        """
        if "/" in path and not path.startswith("plugins/"):
            followed = path.startswith("inventories/")
            yield from (
                Reference(file, followed) for file in self.tree.below(path) if not file.endswith(".md")
            )

    def module(self, dotted: str, near: str) -> Iterator[Reference]:
        """Find the files of a Python module and of the packages around it.

        Args:
            dotted: name of a module, or of something in a module.
            near: path of the file that imports it.
        """
        words = dotted.removeprefix("ansible_collections.gpufarm.cluster.").split(".")
        for folder in (posixpath.dirname(near), *PYTHON_FOLDERS, *self._projects):
            paths = [posixpath.join(folder, *words[: count + 1]) for count in range(len(words))]
            found = [
                *self.files(f"{path}.py" for path in paths),
                *self.files(f"{path}/__init__.py" for path in paths),
            ]
            if found:
                yield from found
                yield from self.files([f"{paths[-1]}/__main__.py"])
                return

    @cached_property
    def _projects(self) -> list[str]:
        """Folders of Python projects that roles install."""
        return sorted({"/".join(path.split("/")[:2]) for path in self.tree.below("packages")})

    def path(self, text: str, near: str) -> Iterator[Reference]:
        """Find what a path names: a file, or the files of a folder.

        Args:
            text: a path as it stands in a file, relative to any folder that it may be relative to there.
            near: path of that file.
        """
        text = text.lstrip("/")
        if not ("/" in text or "." in text) or not text.strip("./"):
            return
        places = [posixpath.join(base, text) for base in self._bases(near)]
        if "/" in text:  # a name without a folder may be that of any file, and is seldom meant for the root's
            places.append(text)
        for path in map(posixpath.normpath, places):
            if path in self.tree.texts:
                yield Reference(path)
                return
            if path in self.tree.folders:
                yield from self.folder(path)
                return

    @staticmethod
    def _bases(near: str) -> Iterator[str]:
        yield posixpath.dirname(near)
        layer, _, rest = near.partition("/")
        name = f"{layer}/{rest.partition('/')[0]}"
        if layer in ("roles", "molecule"):
            yield name
            yield from (f"{name}/{part}" for part in PARTS)
        if layer == "molecule":
            yield "molecule/shared"  # shared tasks name paths from the scenario's folder, which is beside it

    def text(self, text: str, near: str) -> Iterator[Reference]:
        """Find all that a piece of text names: plugins, Python modules and paths."""
        for match in COLLECTION_NAME.finditer(text):
            yield from self.plugin(match[1])
        if PROJECT_LOOKUP in text:
            for match in QUOTED.finditer(text):
                yield from self.folder(f"packages/{match[1]}")
        for match in PYTHON_NAME.finditer(text):
            yield from self.module(match[0], near)
        for match in COMMAND.finditer(text):
            yield from self.module(COMMANDS[match[1]], near)
        for match in PATH.finditer(text):
            yield from self.path(match[0], near)

    @cached_property
    def _node_types(self) -> dict[str, tuple[str, Any]]:
        """Definition of each node type of the library, with the file that it stands in."""
        found: dict[str, tuple[str, Any]] = {}
        for path in self.tree.below("tosca/types"):
            document = yaml.load(self.tree.texts[path], yaml.CSafeLoader)
            found |= {name: (path, body) for name, body in document.get("node_types", {}).items()}
        return found

    def node_type(self, name: str) -> Iterator[Reference]:
        """Find the operations of a node type, its own and those that it inherits."""
        while name in self._node_types:
            path, body = self._node_types[name]
            for text in strings(body):
                yield from self.path(text, path)
            name = body.get("derived_from", "")


def strings(value: Any) -> Iterator[str]:
    """Return every string in a YAML value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
