"""Mistakes in Python change one place, leave the rest as it is, and can be compiled."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from mutation.mutant import Mutant
from mutation.places import mutants
from proof.tree import Tree

PATH = "plugins/module_utils/_x.py"


def of(text: str) -> list[Mutant]:
    return list(mutants(PATH, Tree({PATH: text})))


@pytest.mark.parametrize(
    ("text", "mutator", "expected"),
    [
        ("a < b", "comparison", ["a <= b"]),
        ("a is not b", "comparison", ["a is b"]),
        ("a <  b not in c", "comparison", ["a <=  b not in c", "a <  b in c"]),
        ("a and b and c", "boolean", ["a or b and c", "a and b or c"]),
        ("x = 'ä' + b - c", "arithmetic", ["x = 'ä' + b + c"]),
        ("f(limit=1, on=True)", "constant", ["f(limit=2, on=True)", "f(limit=1, on=False)"]),
        ("x = y if a else z", "condition", ["x = y if not (a) else z"]),
        ("x = [y for y in z if not y]", "condition", ["x = [y for y in z if y]"]),
        ("f(a, b)", "arguments", ["f(b, a)"]),
        ('f(a["x"], a["y"], b["z"])', "key", ['f(a["y"], a["y"], b["z"])', 'f(a["x"], a["x"], b["z"])']),
        ("self.x = f(a)", "statement", ["pass"]),
        ("raise ValueError(a)", "statement", ["pass"]),
        ("x += a", "statement", ["pass"]),
    ],
)
def test_a_mistake_of_each_kind(text: str, mutator: str, expected: list[str]) -> None:
    assert [one.text for one in of(text) if one.mutator == mutator] == expected


def test_a_mistake_may_be_in_what_a_function_returns() -> None:
    assert [one.text for one in of("def f(a):\n    return a\n")] == ["def f(a):\n    return None\n"]


def test_columns_are_right_behind_letters_of_several_bytes() -> None:
    assert [one.text for one in of("x = 'äöü', a == b\n")] == ["x = 'äöü', a != b\n"]


def test_documentation_and_what_is_no_condition_of_the_product_stay() -> None:
    assert of('"""A > b."""\nif TYPE_CHECKING:\n    f(1)\nif __name__ == "__main__":\n    main()\n') == []


def test_a_mutant_tells_its_lines() -> None:
    (one,) = (found for found in of("a = 1\nraise E(\n    b\n)\n") if found.mutator == "statement")
    assert (one.line, one.last, one.was, one.becomes) == (2, 4, "raise E(", "pass")


def test_every_mistake_can_be_compiled() -> None:
    text = "def f(a, b):\n    if a < b or not a:\n        raise E(a)\n    g(a, b)\n    return a + 1\n"
    found = of(text)
    assert len(found) > 6
    for one in found:
        compile(one.text, PATH, "exec")
