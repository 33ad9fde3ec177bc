"""For a console each service of the cluster is asked with the account that is meant for it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness import CASES
from harness.run import Run

ASKED = ("urls", "username", "password")
CHRONOS = ("https://chronos1.example.org:4443", "chronos", "password of chronos")
MARATHON = ("https://marathon1.example.org:8443", "marathon", "password of marathon")
MESOS = ("https://master1.example.org:5050", "mesos", "password of mesos")
APP = {"id": "/ada/lab", "tasks": [{"id": "t1"}], "failed_task": "t0"}


def settings(prefix: str, account: tuple[str, str, str]) -> dict[str, object]:
    url, user, password = account
    return {f"{prefix}_urls": [url], f"{prefix}_user": user, f"{prefix}_password": password}


def asked(run: Run) -> dict[str, tuple[str, str, str]]:
    """Return address and account that each module of the cluster was given."""
    assert not run.failed, run.refusal
    return {
        call.action.rpartition(".")[2]: (call.args["urls"][0], call.args["username"], call.args["password"])
        for call in run.calls
        if all(name in call.args for name in ASKED)
    }


@pytest.mark.parametrize("role", ["chronos_job"])
def test_the_console_of_a_job_asks_chronos_and_mesos_with_the_account_of_each(role: str) -> None:
    case = CASES[role].with_answers({"gpufarm.cluster.chronos_job": {"diff": {"before": {}, "after": {}}}})
    given = settings("chronos_job", CHRONOS) | settings("chronos_job_mesos", MESOS)
    run = case.run(role, {**given, "gpufarm_owner": "deployment one"}, entry="console")
    assert asked(run) == {"chronos_job": CHRONOS, "mesos_console": MESOS}
    [compared] = [call for call in run.calls if call.action == "gpufarm.cluster.chronos_job"]
    assert compared.args["made_for"] == "deployment one"


@pytest.mark.parametrize(
    ("current", "differing", "problem"),
    [
        (APP, {}, ""),
        (APP, {"instances": 2}, ""),
        (APP, {"cmd": "spy"}, "was changed by others (cmd)"),
        (APP, {"env": {"A": "b"}}, "was changed by others (env)"),
        ({}, {}, "is not there"),
    ],
)
@pytest.mark.parametrize("role", ["marathon_app"])
def test_the_console_of_an_app_asks_marathon_and_mesos_with_the_account_of_each(
    role: str, current: dict[str, object], differing: dict[str, object], problem: str
) -> None:
    case = CASES[role].with_answers(
        {
            "gpufarm.cluster.marathon_app": {"app": current, "diff": {"before": {}, "after": differing}},
            "gpufarm.cluster.marathon_info": {"apps": [APP], "framework_id": "f1"},
        }
    )
    given = settings("marathon_app", MARATHON) | settings("marathon_app_mesos", MESOS)
    run = case.run(role, {**given, "gpufarm_owner": "deployment one"}, entry="console")
    assert problem in run.refusal
    if not problem:
        expected = {"marathon_app": MARATHON, "marathon_info": MARATHON, "mesos_console": MESOS}
        assert asked(run) == expected
        [told] = [call for call in run.calls if call.action == "gpufarm.cluster.mesos_console"]
        assert (told.args["framework"], told.args["tasks"]) == ("f1", ["t1", "t0"])
        [compared] = [call for call in run.calls if call.action == "gpufarm.cluster.marathon_app"]
        assert compared.args["made_for"] == "deployment one"


@pytest.mark.parametrize("role", ["chronos_job", "marathon_app"])
def test_nothing_changes_if_mesos_does_not_tell(role: str) -> None:
    answer = {"failed": True, "msg": "Mesos does not answer"}
    run = CASES[role].with_answers({"gpufarm.cluster.mesos_console": answer}).run(role)
    assert "Mesos does not answer" in run.refusal
    assert f"gpufarm.cluster.{role}" not in {call.action for call in run.calls}


@pytest.mark.parametrize(
    "found", [[APP | {"made_for": "deployment one"}], [APP | {"made_for": "deployment two"}], []]
)
@pytest.mark.parametrize("role", ["container_request"])
def test_the_console_of_a_container_asks_marathon_and_mesos_with_the_account_of_each(
    role: str,
    found: list[dict[str, object]],
) -> None:
    case = CASES[role].with_answers({"gpufarm.cluster.marathon_info": {"apps": found, "framework_id": "f1"}})
    given = settings("container_request_marathon", MARATHON) | settings("container_request_mesos", MESOS)
    run = case.run(role, {**given, "gpufarm_owner": "deployment one"}, entry="console")
    if found and found[0]["made_for"] == "deployment one":
        assert asked(run) == {"marathon_info": MARATHON, "mesos_console": MESOS}
    else:
        assert "Marathon has no app /ada/lab that was made for this deployment" in run.refusal


def test_the_console_of_a_job_of_slurm_is_of_one_deployment() -> None:
    run = CASES["slurm_job"].run("slurm_job", {"gpufarm_owner": "deployment one"}, entry="console")
    assert not run.failed, run.refusal
    [told] = [call for call in run.calls if call.action == "gpufarm.cluster.slurm_job_console"]
    assert told.args["made_for"] == "deployment one"
