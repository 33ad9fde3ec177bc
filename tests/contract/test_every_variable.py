"""Another value of a variable changes what a role does, and not as another value of some other one would."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from harness import CASES, Run
from harness.other_values import FOUND, NEEDS, REFUSED, VALUES, WITH, other
from harness.other_values.keys import KEYS
from harness.specs import options


def done(run: Run) -> frozenset[str]:
    """Record of a run: its tasks, all calls of modules, and what the role returns."""
    assert not run.failed, run.refusal
    return frozenset(
        [
            *(f"{step.name} {step.status}" for step in run.steps),
            *(f"{call.host} {call.name} {call.args} {call.environment}" for call in run.calls),
            *(f"{step.name} {step.result}" for step in run.steps if step.action.endswith(".set_fact")),
        ]
    )


def leaf(value: Any) -> Any:
    """A value, or the last that is in a list or mapping."""
    while isinstance(value, (list, dict)) and value:
        value = list(value.values() if isinstance(value, dict) else value)[-1]
    return value


def told_apart(values: Mapping[str, Any], known: Iterable[str]) -> dict[str, str]:
    """The values that are found wherever they get, each as a text that nothing else has in it."""
    texts = {name: str(leaf(value)) for name, value in values.items()}
    return {
        name: text
        for name, text in texts.items()
        if len(text) > 3
        and text not in ("True", "False")
        and not any(text in line for line in known)
        and not any(text in str(value) for one, value in values.items() if one != name)
    }


def effects(role: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Effects of a change of a variable, with the word VALUE in place of its value.

    Args:
        role: whose variables they are.
        names: of variables that need the same.
    """
    first = next(iter(names))
    case, needs = CASES[role].with_answers(FOUND.get(first, {})), NEEDS.get(first, {})
    before = done(case.run(role, needs))
    values = {name: other(role, name) for name in names}
    # In one run, as each takes half a second; what that doesn't show is seen in a run of its own. Choices are
    # no part of it, as a role goes other ways with them.
    alone = {*WITH, *REFUSED, *(name for name in names if "choices" in options(role)[name])}
    together = told_apart({name: value for name, value in values.items() if name not in alone}, before)
    after = (
        done(case.run(role, {**needs, **{name: values[name] for name in together}})) - before
        if together
        else frozenset()
    )
    found = {
        name: frozenset(line.replace(text, "VALUE") for line in after if text in line)
        for name, text in together.items()
    }
    for name in names:
        if not found.get(name):
            run = case.run(role, {**needs, **WITH.get(name, {}), name: values[name]})
            if name in REFUSED:
                assert REFUSED[name] in run.refusal
                found[name] = frozenset([run.refusal])
            else:
                found[name] = frozenset(one.replace(str(values[name]), "VALUE") for one in done(run) ^ before)
    return found


def groups(role: str) -> list[list[str]]:
    """The variables of a role in groups that need the same."""
    found: dict[str, list[str]] = {}
    for name in options(role):
        found.setdefault(f"{FOUND.get(name)} {NEEDS.get(name)}", []).append(name)
    return list(found.values())


def gets_to(place: str, changes: Iterable[str]) -> bool:
    """Whether any of the changes has a text, in which ... stands for any other."""
    pattern = ".*".join(re.escape(part) for part in place.split("..."))
    return any(re.search(pattern, line) for line in changes)


@pytest.mark.parametrize("role", CASES)
def test_every_variable_has_an_effect_of_its_own(role: str) -> None:
    found = {name: changes for names in groups(role) for name, changes in effects(role, names).items()}
    assert not [name for name, changes in found.items() if not changes], "another value changes nothing"
    same = [(one, two) for one in found for two in found if one < two and found[one] == found[two]]
    assert not same, "either of them does the same"
    astray = [name for name in found if name in KEYS and not gets_to(KEYS[name], found[name])]
    assert not astray, "its value isn't where it has to be"


@pytest.mark.parametrize("table", [VALUES, NEEDS, WITH, FOUND, REFUSED, KEYS])
def test_what_is_said_of_variables_is_said_of_such_that_there_are(table: Mapping[str, Any]) -> None:
    assert table.keys() <= {name for role in CASES for name in options(role)}
