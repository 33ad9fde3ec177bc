"""Another value of a variable changes what a role does, and not as another value of some other one would."""

from __future__ import annotations

from typing import Any

import pytest
from harness import CASES, Run
from harness.other_values import NEEDS, UNSEEN, WITH, other
from harness.specs import options

ROLES = (
    "app_gateway",
    "chronos_job",
    "gpu_health",
    "marathon_app",
    "mig",
    "nvidia_container",
    "shared_home",
    "user_accounts",
    "zookeeper",
)


def done(run: Run) -> frozenset[str]:
    """What a run does: its tasks, all calls of modules, and what the role returns."""
    assert not run.failed, run.refusal
    return frozenset(
        [
            *(f"{step.name} {step.status}" for step in run.steps),
            *(f"{call.host} {call.name} {call.args} {call.environment}" for call in run.calls),
            *(f"{step.name} {step.result}" for step in run.steps if step.action.endswith(".set_fact")),
        ]
    )


def effect(role: str, name: str, usual: frozenset[str]) -> frozenset[str]:
    """What becomes other when a variable does, with the word VALUE in place of its value."""
    needs, value = NEEDS.get(name, {}), other(role, name)
    before = done(CASES[role].run(role, needs)) if needs else usual
    after = done(CASES[role].run(role, {**needs, **WITH.get(name, {}), name: value}))
    return frozenset(one.replace(str(value), "VALUE") for one in after ^ before)


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_has_an_effect_of_its_own(role: str) -> None:
    usual = done(CASES[role].run(role))
    found: dict[str, Any] = {name: effect(role, name, usual) for name in options(role) if name not in UNSEEN}
    assert not [name for name, changes in found.items() if not changes], "another value changes nothing"
    alike = [
        (one, another) for one in found for another in found if one < another and found[one] == found[another]
    ]
    assert not alike, "either of them does the same"


def test_what_is_said_of_variables_is_said_of_such_that_there_are() -> None:
    known = {name for role in ROLES for name in options(role)}
    assert {*NEEDS, *WITH, *UNSEEN} <= known
