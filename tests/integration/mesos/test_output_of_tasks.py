# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of tasks of a real Mesos: theirs alone, its end, and what is told when nothing can be read."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.modules import mesos_console

from lab.mesos.real import Mesos
from lab.mesos.real.framework import Framework, until


@pytest.fixture
def framework(mesos: Mesos) -> Iterator[Framework]:
    made = Framework(mesos.port, "ada")
    yield made
    made.stop()


def start(framework: Framework, command: str, name: str = "") -> str:
    return framework.launch(framework.offers(settle=0.5)[0], command, name=name)


def leave(framework: Framework) -> None:
    """Have all that is free be offered to others."""
    framework.call("SUPPRESS")
    ids = [offer["id"] for offer in framework.offers(seconds=6, settle=6)]
    framework.call("DECLINE", decline={"offer_ids": ids, "filters": {"refuse_seconds": 600}})


def console(run: Any, framework: Framework, *tasks: str, **more: Any) -> list[dict[str, Any]]:
    found = run(mesos_console, framework=framework.id["value"], tasks=list(tasks), **more)
    assert "failed" not in found, found
    assert found["changed"] is False
    return list(found["tasks"])


def test_a_task_that_runs_is_told_with_both_streams(run: Any, framework: Framework) -> None:
    before = time.time()
    task = start(framework, "echo hello; echo oops >&2; sleep 600")
    other = start(framework, "echo other; sleep 600")
    until(lambda: len(console(run, framework, task, other)) == 2)
    until(lambda: console(run, framework, task)[0]["stderr"] != "")
    (found,) = console(run, framework, task)
    assert before - 5 < found["begun"] < time.time() + 5
    assert found | {"begun": 0.0} == {
        "id": task,
        "state": "running",
        "reason": "",
        "begun": 0.0,
        "ended": 0.0,
        "machine": "127.0.0.1",
        "stdout": "hello\n",
        "stderr": "oops\n",
        "cut": [],
        "unread": "",
    }
    assert {one["id"] for one in console(run, framework, task, other)} == {task, other}


def test_a_task_that_has_failed_is_told_with_what_it_has_printed(run: Any, framework: Framework) -> None:
    task = start(framework, "echo bye; exit 3")
    framework.wait("TASK_FAILED")
    (found,) = console(run, framework, task)
    assert (found["state"], found["stdout"]) == ("failed", "bye\n")
    assert found["ended"] >= found["begun"] > 0


def test_the_end_of_a_long_line_is_read(run: Any, framework: Framework) -> None:
    task = start(framework, "head -c 10000000 /dev/zero | tr '\\0' x; echo; printf 'the end'")
    framework.wait("TASK_FINISHED")
    (found,) = console(run, framework, task)
    assert found["state"] == "succeeded" and found["cut"] == ["stdout"]
    assert len(found["stdout"]) == 64 * 1024 and found["stdout"].endswith("x\nthe end")


def test_output_that_is_no_text_is_read(run: Any, framework: Framework) -> None:
    task = start(framework, r"printf '\377\376\0\033[31mred\033[0m {{ 1 + 1 }} <b>'")
    framework.wait("TASK_FINISHED")
    (found,) = console(run, framework, task)
    assert found["stdout"] == "\ufffd\ufffd\ufffdred {{ 1 + 1 }} <b>"


def test_tasks_of_another_framework_are_not_told(run: Any, mesos: Mesos, framework: Framework) -> None:
    other = Framework(mesos.port, "bob")
    task = start(framework, "echo secret; sleep 600")
    framework.wait("TASK_RUNNING")
    assert console(run, framework, task) and console(run, other, task) == []
    other.stop()


def test_runs_of_a_job_are_those_with_its_name(run: Any, mesos: Mesos, framework: Framework) -> None:
    names = ["ct:1:0:ada.train:", "ct:2:0:ada.train:", "ct:3:0:ada.train.x:", "ct:4:0:xada.train:"]
    for name in names:
        start(framework, f"echo {name}", name)
        framework.wait("TASK_FINISHED")
    found = run(mesos_console, job="ada.train")["tasks"]
    assert [(one["id"], one["stdout"]) for one in found] == [(name, f"{name}\n") for name in names[1::-1]]
    assert [one["id"] for one in run(mesos_console, job="ada.train", most=1)["tasks"]] == [names[1]]
    leave(framework)
    second = Framework(mesos.port, "bob")
    start(second, "echo mine", "ct:9:0:ada.train:")
    second.wait("TASK_FINISHED")
    refused = run(mesos_console, job="ada.train")
    assert refused["failed"] and "run for 2 frameworks" in refused["msg"]
    second.stop()  # a framework that is gone has no job any more
    until(lambda: "failed" not in run(mesos_console, job="ada.train"))


def test_files_that_the_agent_has_removed_are_told(run: Any, mesos: Mesos, framework: Framework) -> None:
    task = start(framework, "echo gone; sleep 600")
    framework.wait("TASK_RUNNING")
    for agent in (1, 2):
        state = json.loads(mesos.ask("GET", f"/slave({agent})/state")[1])
        for one in (one for known in state["frameworks"] for one in known["executors"]):
            if one["id"] == task:
                shutil.rmtree(one["directory"])
    (found,) = console(run, framework, task)
    assert found["unread"] == "The agent on 127.0.0.1 has no files of this task any more."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Give a job of Chronos, or a framework"),
        ({"job": "a", "framework": "b"}, "not both"),
        ({"job": "a", "most": 0}, "numbers of 1 or more"),
        ({"job": "a", "kib": -1}, "numbers of 1 or more"),
    ],
)
def test_what_cannot_be_is_refused(run: Any, arguments: dict[str, Any], words: str) -> None:
    found = run(mesos_console, **arguments)
    assert found["failed"] and words in found["msg"]
