"""References in a Python file: modules that it imports, and paths in its strings and expressions."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator

from proof.names import COLLECTION_NAME, COMMANDS, Names, Reference

PLUGIN_DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
# Where programs run roles, playbooks, templates and the deployer by their names.
TESTS = ("tests/", "lab/")


def references(path: str, text: str, names: Names) -> Iterator[Reference]:
    """Find what a Python file names.

    Args:
        path: path of the file.
        text: its content.
        names: what names mean.

    Raises:
        SyntaxError, ValueError: the file is not Python.
    """
    module = ast.parse(text)
    nodes = list(ast.walk(module))
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from names.module(alias.name, path)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported(node, path, names)
    constants = set(_constants(nodes))
    for constant in constants:
        yield from names.text(constant, path)
    if path.startswith(TESTS):
        yield from _run(constants, path, names)
    paths = _Paths(path)
    paths.visit(module)
    for found in paths.found:
        if found in names.tree.texts:
            yield Reference(found)
        elif found in names.tree.folders:
            yield from _folder(found, constants, names)


def _run(constants: set[str], path: str, names: Names) -> Iterator[Reference]:
    """References by a word in a test: roles of a play in a string, commands, playbooks, templates."""
    for constant in constants:
        for match in COLLECTION_NAME.finditer(constant):
            yield from names.role(match[1])
            yield from names.playbook(match[1])
        yield from names.playbook(constant)
    for command in constants & COMMANDS.keys():
        yield from names.module(COMMANDS[command], path)
        yield from names.module(command, path)  # as python -m
    beside = [names.tree.texts[file] for file in names.tree.below(posixpath.dirname(path))]
    if any('"templates"' in text for text in beside):  # tests here deploy some of that folder
        for constant in constants:
            yield from names.files([f"tosca/templates/{constant}", f"tosca/templates/{constant}.yaml"])


def _imported(node: ast.ImportFrom, path: str, names: Names) -> Iterator[Reference]:
    """The modules of ``from a.b import c``, where c may be a module or something in a.b."""
    package = node.module or ""
    if node.level:
        folder = path
        for _ in range(node.level):
            folder = posixpath.dirname(folder)
        package = ".".join([*folder.split("/"), *([package] if package else [])])
    for alias in node.names:
        yield from names.module(f"{package}.{alias.name}", path)


def _constants(nodes: list[ast.AST]) -> Iterator[str]:
    """Every string of a program but what only documents it."""
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            documentation |= {id(node.value)} if names & PLUGIN_DOCUMENTATION else set()
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def _folder(path: str, constants: set[str], names: Names) -> Iterator[Reference]:
    """The files of a folder that a program uses; of one that holds a whole layer, what its strings name."""
    if "/" in path:
        yield from names.folder(path)
    else:
        named = [f"{path}/{constant}" for constant in sorted(constants)]
        yield from (reference for folder in named for reference in names.folder(folder))


class _Paths(ast.NodeVisitor):
    """Collects the paths in a program that are made with pathlib.

    A string joined to an unknown value is taken as a path from the root of the repository: most of these
    values are this root, and for others there is no file of that name.

    Args:
        path: path of the program.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.variables: dict[str, str] = {}
        self.found: set[str] = set()

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._assign([node.target], node.value)

    def _assign(self, targets: list[ast.expr], expression: ast.expr) -> None:
        value = self.value(expression)
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if value is not None and names:
            self.variables |= dict.fromkeys(names, value)
            if f"{self.path}/".startswith(f"{value}/" if value else ""):
                return  # a folder around the program: its uses tell what is needed of it
        self.visit(expression)

    def visit(self, node: ast.AST) -> None:
        value = self.value(node) if isinstance(node, ast.expr) else None
        if value is None:
            super().visit(node)
        else:
            self.found.add(value)

    def value(self, node: ast.expr) -> str | None:
        """Return the path that an expression stands for, or None if it is none."""
        match node:
            case ast.Name(id=name):
                return self.variables.get(name)
            case ast.Call(func=ast.Name(id="Path"), args=[ast.Name(id="__file__")]):
                return self.path
            case ast.Call(func=ast.Name(id="Path" | "str"), args=[argument]):
                return self.value(argument)
            case ast.Call(func=ast.Attribute(value=inner, attr="resolve" | "absolute"), args=[]):
                return self.value(inner)
            case ast.Call(
                func=ast.Attribute(value=inner, attr="with_name"), args=[ast.Constant(value=str(name))]
            ):
                known = self.value(inner)
                return None if known is None else posixpath.join(posixpath.dirname(known), name)
            case ast.Attribute(value=inner, attr="parent"):
                known = self.value(inner)
                return None if known is None else posixpath.dirname(known)
            case ast.Subscript(
                value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(up))
            ):
                known = self.value(inner)
                for _ in range(up + 1):
                    known = None if known is None else posixpath.dirname(known)
                return known
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=str(name))):
                return posixpath.normpath(posixpath.join(self.value(left) or "", name))
            case ast.BinOp(left=left, op=ast.Div()):
                return self.value(left)
        return None
