# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of Chronos: definitions, schedules that runs rewrite, fields that a server drops; the modules."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos.job import (
    JobProblem,
    difference,
    lost,
    read_job,
    read_schedule,
)
from ansible_collections.gpufarm.cluster.plugins.modules import chronos_info, chronos_job
from hypothesis import given
from hypothesis import strategies as st
from marathon_fakes import LOGIN, chronos, lose_answer, run

from lab.chronos import server
from lab.chronos.jobs import Chronos

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
LATER = "R/2030-01-01T00:00:00Z/P1D"
JOB = {"name": "train", "command": "true", "schedule": LATER}
GPU = {**JOB, "gpus": 1, "container": {"type": "MESOS", "image": "cuda"}}
OPTIONS = {
    "mesos_task_cpu": 0.1,
    "mesos_task_mem": 128,
    "mesos_task_disk": 256,
    "mesos_task_gpu": 0,
    "user": "root",
    "task_epsilon": 60,
    "disable_after_failures": 0,
}


def call(
    monkeypatch: pytest.MonkeyPatch,
    api: server.Api,
    module: ModuleType = chronos_job,
    check: bool = False,
    **more: Any,
) -> Any:
    user, password = LOGIN.split(":")
    login = {"urls": [f"http://{api.name}"], "username": user, "password": password}
    return run(monkeypatch, module, check, **login, patience=60, **more)


WORD = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
DEFINITIONS = st.fixed_dictionaries(
    {"name": st.just("job"), "command": WORD, "schedule": st.sampled_from([LATER, "R3//PT1H", "R1//P1Y"])},
    optional={
        "cpus": st.sampled_from([0.5, 2]),
        "owner": WORD,
        "retries": st.integers(0, 5),
        "environmentVariables": st.lists(st.fixed_dictionaries({"name": WORD, "value": WORD}), max_size=2),
        "fetch": st.lists(st.just({"uri": "http://x"}), max_size=1),
        "constraints": st.lists(
            st.sampled_from([["rack", "EQUALS", "1"], ["rack", "EQUALS", 1]]), max_size=1
        ),
        "arguments": st.lists(st.sampled_from(["a", 1, True]), max_size=2),
        "container": st.fixed_dictionaries(
            {"image": WORD},
            optional={
                "type": st.sampled_from(["mesos", "DOCKER"]),
                "network": st.just("BRIDGE"),
                "networkInfos": st.sampled_from(
                    [[{"name": "n"}], [{"name": "n", "portMappings": [{"hostPort": 0, "containerPort": 80}]}]]
                ),
                "parameters": st.just([{"key": "cpu-shares", "value": 5}]),
                "volumes": st.just([{"containerPath": "/x", "hostPath": "/y", "mode": "rw"}]),
            },
        ),
        "disabled": st.booleans(),
    },
)


@given(DEFINITIONS, st.integers(0, 5))
def test_what_a_server_fills_in_and_runs_rewrite_is_no_difference(wanted: dict[str, Any], hours: int) -> None:
    clock = [NOW.timestamp()]
    server = Chronos(lambda: clock[0], OPTIONS, gpu_patch=False)
    server.put(read_job(wanted))
    for _hour in range(hours):
        server.advance()
        clock[0] += 3600
    now = datetime.fromtimestamp(clock[0], UTC)
    assert difference(server.job("job"), wanted, now) == ({}, {})


@pytest.mark.parametrize(
    ("current", "wanted", "same"),
    [
        ("R/2026-11-23T00:00:00.000Z/P1D", "R/2026-01-01T00:00:00Z/P1D", True),
        ("R/2026-11-23T00:00:00Z/P1D", "R/2026-01-01T00:00:00Z/P2D", False),
        ("R/2026-11-23T00:00:00Z/P1D", "R/2027-01-01T00:00:00Z/P1D", False),
        ("R2/2026-11-23T00:00:00Z/P1D", "R5/2026-01-01T00:00:00Z/P1D", True),
        ("R9/2026-11-23T00:00:00Z/P1D", "R5/2026-01-01T00:00:00Z/P1D", False),
        ("R9/2026-11-23T00:00:00Z/P1D", "R/2026-01-01T00:00:00Z/P1D", False),
        ("R0/2026-11-22T00:00:00Z/P1D", "R1//P1D", True),
    ],
)
def test_schedules(current: str, wanted: str, same: bool) -> None:
    found = difference({**JOB, "schedule": current}, {**JOB, "schedule": wanted}, NOW)
    assert (found == ({}, {})) is same


@pytest.mark.parametrize(
    ("hour", "current", "same"),
    [
        # It ran at six in Tokyo, nine hours before six in Greenwich.
        (-8, "R/2026-11-24T06:00:00.000+09:00/P1D", True),
        (-10, "R/2026-11-23T06:00:00Z/P1D", True),
        (-10, "R/2026-11-25T06:00:00Z/P1D", False),
    ],
)
def test_a_start_is_one_of_the_time_zone(hour: int, current: str, same: bool) -> None:
    now = datetime(2026, 11, 23, 6, tzinfo=UTC) + timedelta(hours=hour)
    job = {"name": "x", "command": "true", "scheduleTimeZone": "Asia/Tokyo"}
    wanted = {**job, "schedule": "R/2026-11-23T06:00:00Z/P1D"}
    found = difference({**job, "schedule": current}, wanted, now)
    assert (found == ({}, {})) is same


def test_a_job_that_has_run_as_often_as_wanted_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {**JOB, "schedule": "R1//PT1M"}
    with chronos(gpu_patch=False) as api:
        assert call(monkeypatch, api, job=job)["changed"]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            told = call(monkeypatch, api, chronos_info)["jobs"][0]
            if told["disabled"]:
                break
            time.sleep(0.1)
        assert told["disabled"] and told["successCount"] == 1
        assert not call(monkeypatch, api, job=job)["changed"]
        assert call(monkeypatch, api, job={**job, "schedule": "R//PT1M"})["changed"]


@pytest.mark.parametrize(
    "text", ["", "P1D", "R/2030/", "R/2030-01-01T00:00:00Z/P", "R/x/P1D", "Rx//P1D", "R//PT"]
)
def test_schedules_that_are_none(text: str) -> None:
    with pytest.raises(JobProblem):
        read_schedule(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a b"}, "The job's name is 'a b'"),
        ({"gpu": 1}, "no field gpu; did you mean gpus?"),
        ({"epsilon": "PT1M"}, "drops the field epsilon"),
        ({"successCount": 1}, "is what Chronos tells"),
        ({"parents": ["x"]}, "a schedule or parents, and not both"),
        ({"command": ""}, "nothing to run"),
        ({"container": {"type": "MESOS"}}, "has no image"),
        ({"container": {"image": "x", "network": "host"}}, "in capitals"),
        ({"gpus": 1, "container": {"image": "x"}}, "set container.type to MESOS"),
        ({"gpus": 1.5}, "gpus is 1.5; give a whole number"),
        ({"environmentVariables": [{"name": "A"}]}, "environmentVariables needs name and value"),
        ({"fetch": [{"uri": "x"}], "uris": ["x"]}, "give fetch only"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(JobProblem) as error:
        read_job({**JOB, **change})
    assert words in str(error.value)


def test_lost_fields_are_named() -> None:
    assert lost({**GPU, "softError": False}, {**JOB, "container": {"image": "cuda"}}) == ["gpus"]


def test_a_job_is_created_changed_and_removed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with chronos(gpu_patch=False) as api:
        assert call(monkeypatch, api, check=True, job=JOB)["changed"]
        assert call(monkeypatch, api, chronos_info)["jobs"] == []
        assert call(monkeypatch, api, job=JOB)["job"]["command"] == "true"
        assert not call(monkeypatch, api, job=JOB)["changed"]
        changed = call(monkeypatch, api, job={**JOB, "cpus": 2, "command": "false"})
        assert changed["diff"]["after"] == {"command": "false", "cpus": 2}
        info = call(monkeypatch, api, chronos_info)
        assert [(job["name"], job["state"], job["status"]) for job in info["jobs"]] == [
            ("train", "idle", "fresh")
        ]
        assert call(monkeypatch, api, job={"name": "train"}, state="absent")["changed"]
        assert not call(monkeypatch, api, job={"name": "train"}, state="absent")["changed"]


def test_a_job_of_another_deployment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = {"made_for": "deployment one"}, {"made_for": "deployment two"}
    with chronos(gpu_patch=False) as api:
        assert call(monkeypatch, api, job=JOB, secret_env={"TOKEN": "x"}, **one)["changed"]
        assert not call(monkeypatch, api, job=JOB, secret_env={"TOKEN": "x"}, **one)["changed"]
        (told,) = call(monkeypatch, api, chronos_info)["jobs"]
        assert "environmentVariables" not in told
        forged = {**JOB, "environmentVariables": [{"name": "GPUFARM_MADE_FOR", "value": "deployment one"}]}
        for other in (two, {}):
            refused = call(monkeypatch, api, job={**forged, "command": "false"}, check=not other, **other)
            assert refused["failed"] and "job train is there and was not made for this" in refused["msg"]
            assert not call(monkeypatch, api, job=JOB, state="absent", **other)["changed"]
        assert call(monkeypatch, api, job=forged, take_over=True, **two)["changed"]
        assert call(monkeypatch, api, job=JOB, **one)["failed"]
        assert call(monkeypatch, api, job=JOB, state="absent", **two)["changed"]


def test_stock_chronos_keeps_no_job_that_would_run_without_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = {**GPU, "schedule": "R1//P1Y"}
    with chronos(gpu_patch=False) as api:
        result = call(monkeypatch, api, job=soon)
        assert result["failed"] and "has dropped gpus from the job train" in result["msg"]
        assert call(monkeypatch, api, chronos_info)["jobs"] == []
        # a job that was there is put back
        call(monkeypatch, api, job=JOB)
        assert call(monkeypatch, api, job=soon)["failed"]
        assert not call(monkeypatch, api, job=JOB)["changed"]


def test_a_build_with_the_patch_keeps_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    with chronos(gpu_patch=True) as api:
        result = call(monkeypatch, api, job=GPU)
        assert result["changed"] and result["job"]["gpus"] == 1 and result["job"]["disabled"] is False
        assert not call(monkeypatch, api, job=GPU)["changed"]


def test_dependent_jobs_and_how_runs_end_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with chronos(gpu_patch=False) as api:
        call(monkeypatch, api, job=JOB)
        call(monkeypatch, api, job={"name": "after", "command": "true", "parents": ["train"]})
        with api.lock:
            api.lead().run("train")
        status: dict[str, str] = {}
        for _attempt in range(600):
            status = {job["name"]: job["status"] for job in call(monkeypatch, api, chronos_info)["jobs"]}
            if set(status.values()) == {"success"}:
                break
            time.sleep(0.1)
        assert status == {"train": "success", "after": "success"}


def test_a_job_that_was_removed_before_its_leader_died_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with chronos(gpu_patch=False) as api:
        call(monkeypatch, api, job=JOB)
        lose_answer(api, "DELETE")
        result = call(monkeypatch, api, job=JOB, state="absent")
        assert result.get("msg") is None and result["changed"]
        assert call(monkeypatch, api, chronos_info)["jobs"] == []


def test_a_job_that_starts_at_once_is_not_started_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = {**JOB, "schedule": "R1//P1Y"}
    with chronos(gpu_patch=False) as api:
        lose_answer(api, "POST")
        assert "Chronos cannot be reached" in call(monkeypatch, api, job=soon)["msg"]
        assert not call(monkeypatch, api, job=soon)["changed"]
        with api.lock:
            assert api.lead().data["number"] == 1


def test_refusals_are_one_sentence_and_no_stack_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    with chronos(gpu_patch=False) as api:
        result = call(monkeypatch, api, job={"name": "x", "command": "true", "parents": ["nobody"]})
    assert result["msg"] == "Chronos does not take the job x: parents does not exist: ['nobody']."


def test_secrets_are_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with chronos(gpu_patch=False) as api:
        result = call(monkeypatch, api, job=JOB, secret_env={"TOKEN": "s3cr3t-value"})
        assert "s3cr3t-value" not in json.dumps(result)
        again = call(monkeypatch, api, job=JOB, secret_env={"TOKEN": "s3cr3t-value"})
        assert result["changed"] and not again["changed"]
        changed = call(monkeypatch, api, job=JOB, secret_env={"TOKEN": "other"})
        removed = call(monkeypatch, api, job=JOB)
    assert changed["changed"] and removed["changed"]
    assert "s3cr3t-value" not in json.dumps(changed) and "other" not in json.dumps(removed)
    assert removed["diff"]["before"]["environmentVariables"] == [{"name": "TOKEN", "value": "********"}]
