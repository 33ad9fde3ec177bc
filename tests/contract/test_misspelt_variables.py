"""Variables of a host that look like those of a role and are none are refused before anything changes."""

from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._role_variables import misspelt
from harness import CASES
from harness.specs import options

EVERY_ROLE = pytest.mark.parametrize("role", sorted(CASES))


@EVERY_ROLE
def test_all_misspelt_variables_of_a_host_are_refused_at_once(role: str) -> None:
    last = max(options(role))
    wrong = {f"{last}x": "1", f"{role}_qqqqqqq": "1"}
    case = CASES[role]
    run = case.run(role, wrong)
    assert run.failed
    assert f"{last}x is no variable of the role {role}; did you mean {last}?" in run.refusal
    assert f"{role}_qqqqqqq is no variable of the role {role}; remove it" in run.refusal
    assert not [call for call in run.calls if not call.asks]


@EVERY_ROLE
def test_results_and_variables_of_other_roles_are_not_refused(role: str) -> None:
    others = {f"{role}_result": {}, f"__{role}_registered": {}, f"_{role}_argument": 1, "gpufarm_owner": "x"}
    longer = {f"{other}_qqqqqqq": 1 for other in CASES if other != role}
    run = CASES[role].run(role, {**others, **longer})
    assert not run.failed, run.refusal


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("jupyterhub_iam_grups", "jupyterhub_iam_groups"),
        ("jupyterhub_iam_Groups", "jupyterhub_iam_groups"),
        ("jupyterhub_memory_choice", "jupyterhub_memory_choices"),
    ],
)
def test_the_nearest_variable_is_named(name: str, near: str) -> None:
    told = misspelt("jupyterhub", ["jupyterhub_port", name, "mig_gpu"], options("jupyterhub"), CASES)
    assert told == [f"{name} is no variable of the role jupyterhub; did you mean {near}?"]


def test_a_variable_belongs_to_the_role_with_the_longest_name() -> None:
    given = ["marathon_app_url", "marathon_user", "marathon_apps"]
    told = misspelt("marathon", given, options("marathon"), CASES)
    assert [sentence.split()[0] for sentence in told] == ["marathon_apps", "marathon_user"]
    assert [one.split()[0] for one in misspelt("marathon_app", given, options("marathon_app"), CASES)] == [
        "marathon_app_url"
    ]
