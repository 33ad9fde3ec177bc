"""Mistakes in Python."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutation.mutant import Edit

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
}
# Other kinds of conditions have mutators of their own.
OWN_MUTATOR = (ast.Compare, ast.BoolOp, ast.Constant, ast.NamedExpr)


def edits(text: str) -> Iterator[Edit]:
    """Return the mistakes that a Python file may have, in the order of their places.

    Raises:
        SyntaxError: the file is not Python.
    """
    found = _Finder(text)
    found.visit(ast.parse(text))
    yield from sorted(found.edits, key=lambda edit: (edit.start, edit.end, edit.text))


class _Finder(ast.NodeVisitor):
    """Collects edits.

    Args:
        text: the file.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[Edit] = []
        self.keys: dict[str, set[str]] = {}
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Return the index of a place; ast counts columns in bytes of UTF-8."""
        start = self.starts[line - 1]
        return start + len(self.text[start : self.starts[line]].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def replace(self, mutator: str, node: ast.expr | ast.stmt, text: str) -> None:
        self.edits.append(Edit(mutator, *self.span(node), text))

    def between(self, mutator: str, left: ast.expr, right: ast.expr, pattern: str, text: str) -> None:
        """Replace an operator between two expressions."""
        start, end = self.span(left)[1], self.span(right)[0]
        match = re.compile(pattern).search(self.text, start, end)
        if match:
            self.edits.append(Edit(mutator, match.start(), match.end(), text))

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            return
        self.condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.condition(test)
        self.generic_visit(node)

    def condition(self, test: ast.expr) -> None:
        """Negate a condition."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.edits.append(Edit("condition", self.span(test)[0], self.span(test.operand)[0], ""))
        elif not isinstance(test, OWN_MUTATOR):
            start, end = self.span(test)
            self.replace("condition", test, f"not ({self.text[start:end]})")

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        ):
            self.between("comparison", left, right, *COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between("boolean", left, right, rf"\b{word}\b", other)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)
        numbers = not any(
            isinstance(side, texts) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        signs: dict[type[ast.operator], tuple[str, str]] = {ast.Add: (r"\+", "-"), ast.Sub: ("-", "+")}
        if numbers and type(node.op) in signs:
            self.between("arithmetic", node.left, node.right, *signs[type(node.op)])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            self.replace("constant", node, str(node.value + 1))

    def visit_Module(self, node: ast.Module) -> None:
        for one in ast.walk(node):
            match one:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                    self.keys.setdefault(name, set()).add(key)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Take another key of the same mapping."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                known = sorted(self.keys[name])
                if len(known) > 1:
                    self.replace("key", node.slice, f'"{known[known.index(key) - 1]}"')
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value and not isinstance(node.value, ast.Constant):
            self.replace("return", node.value, "None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            if isinstance(node.value, ast.Call):
                self.replace("statement", node, "pass")
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.replace("statement", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace("statement", node, "pass")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self.replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if len(node.args) == 2 and not node.keywords:
            one, two = (ast.unparse(argument) for argument in node.args)
            plain = all(isinstance(argument, (ast.Name, ast.Attribute)) for argument in node.args)
            if plain and one != two and ast.unparse(node.func) != "isinstance":
                start, end = self.span(node.args[0])[0], self.span(node.args[1])[1]
                self.edits.append(Edit("arguments", start, end, f"{two}, {one}"))
        self.generic_visit(node)
