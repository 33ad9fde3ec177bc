"""Mistakes in templates of Jinja and in expressions between braces."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mutation.mutant import Edit

CONDITION = re.compile(r"\{%-?\s*(?:el)?if\s+(.+?)\s*-?%\}")
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
OPERATORS = {" == ": " != ", " != ": " == ", " and ": " or ", " or ": " and ", " not in ": " in "}
OPERATOR = re.compile("|".join(re.escape(operator) for operator in OPERATORS))
STRING = re.compile(r"'[^'\n]*'")


def expression_edits(text: str, start: int, end: int, others: Mapping[str, str]) -> Iterator[Edit]:
    """Return the mistakes that an expression may have.

    Args:
        text: the file.
        start: index at which the expression begins.
        end: index after it.
        others: for variables of the role another one of the same type.
    """
    strings = [match.span() for match in STRING.finditer(text, start, end)]

    def in_string(at: int) -> bool:
        return any(begin < at < stop for begin, stop in strings)

    for match in OPERATOR.finditer(text, start, end):
        if not in_string(match.start()):
            yield Edit("comparison", *match.span(), OPERATORS[match[0]])
    for match in re.compile(r"\b[a-z]\w+\b").finditer(text, start, end):
        if match[0] in others and not in_string(match.start()):
            yield Edit("variable", *match.span(), others[match[0]])


def edits(text: str, others: Mapping[str, str]) -> Iterator[Edit]:
    """Return the mistakes that a template may have.

    Args:
        text: the file.
        others: for variables of the role another one of the same type.
    """
    for match in CONDITION.finditer(text):
        yield Edit("condition negated", *match.span(1), f"not ({match[1]})")
    for match in EXPRESSION.finditer(text):
        yield from expression_edits(text, *match.span(), others)
    start = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith(("#", ";", "//", "{#", "{%")):
            yield Edit("line removed", start, start + len(line), "")
        start += len(line)
