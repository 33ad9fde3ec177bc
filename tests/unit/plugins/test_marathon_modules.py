# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules for Marathon against its fake: apps, groups, waiting, stalls, locks, leaders."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.io import api
from ansible_collections.gpufarm.cluster.plugins.modules import marathon_app, marathon_group, marathon_info
from marathon_fakes import LOGIN, Instances, lose_answer, marathon, run

from lab.marathon import state
from lab.patience import PATIENCE

USER, PASSWORD = LOGIN.split(":")
APP = {"id": "/ada/sleep", "cmd": "sleep 1000", "cpus": 1, "mem": 64}
GPU = {
    **APP,
    "id": "/ada/gpu",
    "gpus": 1,
    "container": {"type": "MESOS", "docker": {"image": "cuda"}},
    "upgradeStrategy": {"minimumHealthCapacity": 0, "maximumOverCapacity": 0},
}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LAUNCH_SECONDS", 0.02)
    monkeypatch.setattr(state, "KILL_SECONDS", 0.01)
    monkeypatch.setattr(api, "FIRST_PAUSE", 0.02)


@pytest.fixture
def cluster() -> Iterator[Instances]:
    with marathon(new_group_enforce_role="off") as instances:
        yield instances


class Caller:
    """Runs modules with the credentials of the cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cluster: Instances) -> None:
        self.monkeypatch, self.cluster = monkeypatch, cluster

    def __call__(self, module: ModuleType, check: bool = False, **arguments: Any) -> Any:
        login = {"urls": self.cluster.urls, "username": USER, "password": PASSWORD}
        return run(self.monkeypatch, module, check, **{**login, "patience": 60, **arguments})


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, cluster: Instances) -> Caller:
    return Caller(monkeypatch, cluster)


def test_an_app_is_created_once_and_runs(call: Caller) -> None:
    planned = call(marathon_app, check=True, app=APP)
    assert planned["changed"] and planned["diff"]["after"]["cmd"] == "sleep 1000" and planned["app"] == {}
    assert call(marathon_info)["apps"] == []
    first = call(marathon_app, app=APP)
    assert first["changed"] and first["deployment"]
    assert [task["state"] for task in first["tasks"]] == ["TASK_RUNNING"]
    again = call(marathon_app, app=APP)
    assert not again["changed"] and again["deployment"] == ""
    assert again["app"]["version"] == first["app"]["version"]


def test_an_app_of_another_deployment_is_left_alone(call: Caller) -> None:
    one, two = {"made_for": "deployment one"}, {"made_for": "deployment two"}
    assert call(marathon_app, app=APP, **one)["app"]["labels"] == {"GPUFARM_MADE_FOR": "deployment one"}
    assert not call(marathon_app, app=APP, **one)["changed"]
    assert [app["made_for"] for app in call(marathon_info)["apps"]] == ["deployment one"]
    for other in (two, {}):
        refused = call(marathon_app, app={**APP, "cpus": 2}, check=not other, **other)
        assert (
            refused["failed"] and "/ada/sleep is there and was not made for this deployment" in refused["msg"]
        )
        assert not call(marathon_app, app=APP, state="absent", **other)["changed"]
    taken = call(marathon_app, app={**APP, "cpus": 2}, take_over=True, **two)
    assert taken["changed"] and taken["app"]["cpus"] == 2
    assert call(marathon_app, app=APP, **one)["failed"]
    assert call(marathon_app, app=APP, state="absent", **two)["changed"]


def test_a_label_of_a_user_takes_no_app(call: Caller) -> None:
    by_hand = {**APP, "id": "/ada/hand"}
    call(marathon_app, app=by_hand)
    forged = {**by_hand, "labels": {"GPUFARM_MADE_FOR": ""}}
    assert call(marathon_app, app=forged, made_for="deployment one")["failed"]
    own = {**APP, "labels": {"GPUFARM_MADE_FOR": "deployment two", "colour": "red"}}
    made = call(marathon_app, app=own, made_for="deployment one")
    assert made["app"]["labels"] == {"GPUFARM_MADE_FOR": "deployment one", "colour": "red"}


def test_a_change_is_shown_and_made(call: Caller) -> None:
    call(marathon_app, app={**APP, "labels": {"a": "b"}, "env": {"X": "1"}})
    changed = call(marathon_app, app={**APP, "instances": 3, "cpus": 2})
    assert changed["diff"] == {
        "before": {"cpus": 1, "instances": 1, "labels": {"a": "b"}, "env": {"X": "********"}},
        "after": {"cpus": 2, "instances": 3},
    }
    assert changed["app"]["tasksRunning"] == 3 and changed["app"]["labels"] == {}


def test_a_gpu_app_that_no_agent_can_hold_says_which_is_short(call: Caller) -> None:
    result = call(marathon_app, app={**GPU, "gpus": 3}, wait_timeout=0.2)
    assert result["failed"]
    assert (
        "/ada/gpu waits for 1 more instances; of 2 offers to role * 2 with fewer than 3 GPUs" in result["msg"]
    )
    # the deployment is still there: the second run waits for it and tells it again
    again = call(marathon_app, app={**GPU, "gpus": 3}, wait_timeout=0.2)
    assert "fewer than 3 GPUs" in again["msg"]
    waiting = call(marathon_info)["waiting"]
    assert [one["id"] for one in waiting] == ["/ada/gpu"]
    assert call(marathon_app, app={"id": "/ada/gpu"}, state="absent", force=True)["changed"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"constraints": [["hostname", "LIKE", "nowhere"]]},
            "2 do not meet its constraints (hostname LIKE nowhere)",
        ),
        ({"cpus": 7, "instances": 2}, "1 with fewer than 7 CPUs and 1 on agents with GPUs"),
        ({"mem": 99999}, "2 with less than 99999 MB of memory"),
        ({"acceptedResourceRoles": ["physics"]}, "2 not reserved for a role that it accepts"),
        ({"env": {"FAKE_EXIT": "3"}}, "has tasks that end (Command exited with status 3 on agent1)"),
        (
            {"env": {"FAKE_UNHEALTHY": "1"}, "healthChecks": [{"protocol": "MESOS_TCP", "portIndex": 0}]},
            "has 1 instances that fail their health checks",
        ),
    ],
)
def test_a_stall_says_its_reason(call: Caller, change: dict[str, Any], words: str) -> None:
    result = call(marathon_app, app={**APP, **change}, wait_timeout=0.3)
    assert result["failed"] and words in result["msg"], result["msg"]


def test_without_the_feature_the_refusal_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with marathon(enable_features="") as instances:
        result = Caller(monkeypatch, instances)(marathon_app, app=GPU)
    assert result["failed"] and "Feature gpu_resources is not enabled" in result["msg"]


def test_an_app_that_a_deployment_holds_is_waited_for_or_forced(call: Caller) -> None:
    call(marathon_app, app={**APP, "cpus": 99}, wait=False)
    held = call(marathon_app, app=APP, wait_timeout=0.2)
    assert "/ada/sleep is held by deployment" in held["msg"] and "fewer than 99 CPUs" in held["msg"]
    forced = call(marathon_app, app=APP, force=True)
    assert forced["changed"] and forced["app"]["tasksRunning"] == 1


def test_a_deployment_that_somebody_rolls_back_is_told(call: Caller, cluster: Instances) -> None:
    call(marathon_app, app=APP)

    def roll_back() -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with cluster.leader.lock:
                marathon = cluster.leader.lead()
                if marathon.data["deployments"]:
                    marathon.cancel(marathon.data["deployments"][0]["id"], force=False)
                    return
            time.sleep(0.05)

    threading.Thread(target=roll_back).start()
    result = call(marathon_app, app={**APP, "cpus": 99}, wait_timeout=PATIENCE)
    assert "/ada/sleep is not as it was defined" in result["msg"]


def test_secrets_are_sent_and_not_shown(call: Caller, cluster: Instances) -> None:
    result = call(marathon_app, app={**APP, "env": {"PLAIN": "1"}}, secret_env={"TOKEN": "s3cr3t-value"})
    assert cluster.leader.lead().data["apps"]["/ada/sleep"]["definition"]["env"]["TOKEN"] == "s3cr3t-value"
    assert "s3cr3t-value" not in json.dumps(result)
    assert result["diff"]["after"]["env"] == {"PLAIN": "1", "TOKEN": "********"}


def test_the_environment_that_was_before_is_not_shown(call: Caller) -> None:
    env = {"KEPT": "1", "CHANGED": "2", "OPEN": "3"}
    call(
        marathon_app,
        app={**APP, "env": env},
        secret_env={"TOKEN": "former-s3cr3t", "RENAMED": "other-s3cr3t"},
    )
    env = {"KEPT": "1", "CHANGED": "4", "RENAMED": "5"}
    result = call(marathon_app, app={**APP, "env": env}, secret_env={"OPEN": "new-s3cr3t"})
    assert "s3cr3t" not in json.dumps(result)
    hidden = dict.fromkeys(("CHANGED", "OPEN", "RENAMED", "TOKEN"), "********")
    assert result["diff"]["before"]["env"] == {**hidden, "KEPT": "1"}
    assert result["diff"]["after"]["env"] == {**env, "OPEN": "********"}


def test_an_app_is_removed_once(call: Caller) -> None:
    call(marathon_app, app=APP)
    assert call(marathon_app, check=True, app={"id": "/ada/sleep"}, state="absent")["changed"]
    assert call(marathon_app, app={"id": "ada/sleep"}, state="absent")["changed"]
    assert not call(marathon_app, app={"id": "/ada/sleep"}, state="absent")["changed"]


def test_all_that_is_wrong_is_told_before_anything_is_asked(call: Caller) -> None:
    wrong = {"id": "/Ada", "gpu": 1, "uris": [], "instances": 1.5, "version": "x"}
    message = call(marathon_app, urls=["http://127.0.0.1:1"], app=wrong)["msg"]
    for words in (
        "'/Ada' is no path",
        "no field gpu; did you mean gpus?",
        "uris is outdated; use fetch",
        "instances is 1.5",
        "The field version is what Marathon tells",
        "nothing to run",
    ):
        assert words in message, message


def test_standbys_and_a_change_of_leader_are_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    with marathon(count=3) as instances:
        call = Caller(monkeypatch, instances)
        instances.elect(2)  # the first two proxy
        assert call(marathon_app, app=APP)["changed"]
        assert call(marathon_info)["leader"] == instances.apis[2].name
        instances.depose(0.5, 1)  # 503 meanwhile
        assert not call(marathon_app, app=APP)["changed"]
        assert call(marathon_info)["leader"] == instances.apis[1].name


def test_errors_that_pass_are_waited_out(call: Caller, cluster: Instances) -> None:
    cluster.leader.faults = [503, 502]
    assert call(marathon_app, app=APP)["changed"]


@pytest.mark.parametrize(("method", "wanted"), [("PUT", {**APP, "mem": 65}), ("DELETE", None)])
def test_what_was_done_before_its_leader_died_is_done(
    call: Caller, cluster: Instances, method: str, wanted: dict[str, Any] | None
) -> None:
    call(marathon_app, app=APP)
    lose_answer(cluster.leader, method)
    result = call(marathon_app, app=wanted or APP, state="present" if wanted else "absent")
    assert result.get("msg") is None and result["changed"]
    assert [app["mem"] for app in call(marathon_info)["apps"]] == ([65] if wanted else [])


def test_a_group_that_was_removed_before_its_leader_died_is_gone(call: Caller, cluster: Instances) -> None:
    call(marathon_group, id="/ada")
    lose_answer(cluster.leader, "DELETE")
    assert call(marathon_group, id="/ada", state="absent")["group"] == {}


def test_wrong_credentials_are_told(call: Caller) -> None:
    result = call(marathon_info, password="other")
    assert "does not accept these credentials" in result["msg"]


def test_a_group_enforces_its_role(call: Caller) -> None:
    planned = call(marathon_group, check=True, id="/ada", enforce_role=True)
    assert planned["changed"] and planned["diff"]["after"]["enforce_role"] is True
    made = call(marathon_group, id="/ada", enforce_role=True)
    assert made["changed"] and made["group"]["enforce_role"] is True
    assert not call(marathon_group, id="ada", enforce_role=True)["changed"]
    assert call(marathon_app, app=APP)["app"]["role"] == "ada"
    refused = call(marathon_app, app={**APP, "role": "physics"})
    assert "/role: got physics, expected one of: ada" in refused["msg"]
    changed = call(marathon_group, id="/ada", enforce_role=False)
    assert changed["changed"] and changed["diff"]["before"]["enforce_role"] is True
    assert changed["group"]["apps"] == ["/ada/sleep"]


def test_a_group_in_use_is_kept_unless_all_of_it_is_meant(call: Caller) -> None:
    call(marathon_app, app=APP)
    kept = call(marathon_group, id="/ada", state="absent")
    assert kept["failed"] and "The group /ada holds /ada/sleep" in kept["msg"]
    assert call(marathon_group, id="/ada", state="absent", recursive=True)["changed"]
    assert not call(marathon_group, id="/ada", state="absent")["changed"]
    assert call(marathon_info)["apps"] == []


def test_only_top_level_groups_enforce(call: Caller) -> None:
    assert "only top-level groups" in call(marathon_group, id="/a/b", enforce_role=True)["msg"]


def test_what_runs_is_told(call: Caller) -> None:
    call(marathon_app, app=APP)
    call(marathon_app, app=GPU)
    info = call(marathon_info, id="/ada/gpu")
    assert info["version"] == "1.11.24" and info["features"] == ["gpu_resources"]
    (app,) = info["apps"]
    assert (app["gpus"], app["running"], app["tasks"][0]["host"]) == (1, 1, "gpu1")
    assert info["waiting"] == [] and info["deployments"] == []
