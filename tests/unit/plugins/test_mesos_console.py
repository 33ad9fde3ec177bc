# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks as a master tells them, and what they have printed as a text that is safe to show."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.error import HTTPError

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import Connection
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import console
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.sandbox import Sandboxes
from hypothesis import given
from hypothesis import strategies as st


def status(state: str, timestamp: float, **other: Any) -> dict[str, Any]:
    return {"state": state, "timestamp": timestamp, **other}


def entry(
    task: str, state: str, *statuses: dict[str, Any], framework: str = "F1", **other: Any
) -> dict[str, Any]:
    ids = {"task_id": {"value": task}, "framework_id": {"value": framework}, "agent_id": {"value": "S1"}}
    return {**ids, "name": task, "state": state, "statuses": [*statuses], **other}


def test_states_times_and_reasons_are_read() -> None:
    ran = status("TASK_RUNNING", 10.0)
    message = {"message": "Command exited with status 3", "reason": "REASON_COMMAND_EXECUTOR_FAILED"}
    memory = {"reason": "REASON_CONTAINER_LIMITATION_MEMORY"}
    told = {
        "pending_tasks": [entry("pending", "TASK_STAGING")],
        "tasks": [entry("runs", "TASK_RUNNING", status("TASK_STARTING", 11.0), status("TASK_RUNNING", 12.0))],
        "completed_tasks": [
            entry("well", "TASK_FINISHED", ran, status("TASK_FINISHED", 20.0, **message)),
            entry("exits", "TASK_FAILED", ran, status("TASK_FAILED", 21.0, **message)),
            entry("large", "TASK_FAILED", ran, status("TASK_FAILED", 22.0, **memory)),
            entry("killed", "TASK_KILLED", status("TASK_KILLED", 9.0)),
            entry("runs", "TASK_FAILED", ran),
        ],
        "unreachable_tasks": [entry("away", "TASK_UNREACHABLE", ran, status("TASK_UNREACHABLE", 30.0))],
    }
    found = [(one.id, one.state, one.reason, one.begun, one.ended) for one in console.read_tasks(told)]
    assert found == [
        ("pending", "waiting", "", 0.0, 0.0),
        ("runs", "running", "", 12.0, 0.0),
        ("well", "succeeded", "", 10.0, 20.0),
        ("large", "failed", "container limitation memory", 10.0, 22.0),
        ("exits", "failed", "Command exited with status 3", 10.0, 21.0),
        ("away", "lost", "", 10.0, 30.0),
        ("killed", "killed", "", 9.0, 9.0),
    ]
    assert console.read_tasks({}) == []


def test_a_task_that_is_to_be_killed_and_one_of_an_unknown_state_are_read() -> None:
    told = {"tasks": [entry("a", "TASK_KILLING"), entry("b", "TASK_OF_A_LATER_VERSION")]}
    assert {one.id: one.state for one in console.read_tasks(told)} == {"a": "running", "b": "lost"}


def test_the_folder_is_that_of_the_executor() -> None:
    own, shared = console.read_tasks(
        {
            "tasks": [
                entry("b", "TASK_RUNNING", status("TASK_RUNNING", 2.0)),
                entry("a", "TASK_RUNNING", status("TASK_RUNNING", 1.0, executor_id={"value": "E"})),
            ]
        }
    )
    assert console.folder(own) == "/frameworks/F1/executors/b/runs/latest"
    assert console.folder(shared) == "/frameworks/F1/executors/E/runs/latest"


@pytest.mark.parametrize("time", [1e300, -1.0, float("nan"), float("inf"), "later", None, 10**400])
def test_a_time_that_is_none_is_left_out(time: Any) -> None:
    told = {
        "completed_tasks": [
            entry("a", "TASK_FAILED", status("TASK_RUNNING", time), status("TASK_FAILED", time))
        ]
    }
    (found,) = console.read_tasks(told)
    assert (found.begun, found.ended) == (0.0, 0.0)


def test_a_reason_is_one_short_line() -> None:
    message = "one\ntwo\x1b[31m\u202e" + "x" * 10_000
    told = {"completed_tasks": [entry("a", "TASK_FAILED", status("TASK_FAILED", 1.0, message=message))]}
    (found,) = console.read_tasks(told)
    assert found.reason.startswith("one two\ufffdxxx") and len(found.reason) == console.LONGEST_REASON


@pytest.mark.parametrize(
    ("task", "own"),
    [
        ("ct:1795826818000:0:ada.train:", True),
        ("ct:1795826818000:12:ada.train:--epochs 3", True),
        ("ct:1:0:ada.train:x\ny", True),
        ("ct:1:0:ada.train", False),
        ("ct:1:0:ada.train2:", False),
        ("ct:1:0:adaxtrain:", False),
        ("ct:1:0:bob:ct:1:0:ada.train:", False),
        ("ct:a:0:ada.train:", False),
        ("xct:1:0:ada.train:", False),
    ],
)
def test_runs_of_a_job_are_known_by_their_ids(task: str, own: bool) -> None:
    (found,) = console.read_tasks({"tasks": [entry(task, "TASK_RUNNING")]})
    assert console.of_job("ada.train")(found) is own


def test_runs_of_frameworks_that_are_gone_are_left_out_and_those_of_two_refused() -> None:
    tasks = console.read_tasks(
        {"tasks": [entry("ct:1:0:a:", "TASK_RUNNING"), entry("ct:1:0:a:", "TASK_RUNNING", framework="F2")]}
    )
    assert [one.framework for one in console.runs_of(tasks, "a", {"F2"})] == ["F2"]
    assert console.runs_of(tasks, "b", {"F1", "F2"}) == []
    with pytest.raises(console.ConsoleError, match=r"a run for 2 frameworks of Mesos \(F1, F2\)"):
        console.runs_of(tasks, "a", {"F1", "F2"})


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"plain\n", "plain\n"),
        ("größer".encode(), "größer"),
        (b"\xff\xfe\x00", "\ufffd\ufffd\ufffd"),
        (b"\x1b[1;31mred\x1b[0m\x1b[K", "red"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
        (b"\x1bPsixel\x1b\\a\x1bcb\x1b(0c", "abc"),
        ("\x9b31mred\x9d0;title\x9cx".encode(), "redx"),
        (b"\x1b]no end", ""),
        (b"\x1b", ""),
        (b" 1%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"one\rtwo\r", "two"),
        (b"a\x08b\x0cc\x7f", "a\ufffdb\ufffdc\ufffd"),
        ("a\u202eb\u2066c\u2028d".encode(), "a\ufffdb\ufffdc\ufffdd"),
        (b"{{ 1 + 1 }} <b>", "{{ 1 + 1 }} <b>"),
    ],
)
def test_what_is_printed_becomes_text(printed: bytes, text: str) -> None:
    assert console.readable(printed, begins=True) == text


def test_half_a_character_at_the_beginning_is_left_out() -> None:
    assert console.readable("ü".encode()[1:] + b"x", begins=False) == "x"
    assert console.readable("ü".encode()[1:] + b"x", begins=True) == "\ufffdx"
    assert console.readable(b"x" + "ü".encode(), begins=False) == "xü"


@given(st.binary(max_size=300) | st.text(alphabet="\x1b[]m;\r\n\x07\\a0", max_size=300).map(str.encode))
def test_no_bytes_give_a_sign_that_does_something(printed: bytes) -> None:
    text = console.readable(printed, begins=True)
    assert not [sign for sign in text if not sign.isprintable() and sign not in "\n\t" and sign.isascii()]
    assert text.encode().decode() == text and console.cleaned(text) == text


class Agents:
    """Agents of Mesos that answer as the tests want it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files, self.asked, self.away = files, [], False

    def __call__(self, url: str, **request: Any) -> Any:
        self.asked.append((url, request["headers"].get("Authorization")))
        if self.away:
            raise ConnectionRefusedError("Connection refused")
        body = json.loads(request["data"])["read_file"]
        if body["path"] not in self.files:
            raise HTTPError(url, 404, "", {}, BytesIO(b""))
        data = self.files[body["path"]]
        part = data[body["offset"] : body["offset"] + body["length"]]
        text = {
            "type": "READ_FILE",
            "read_file": {"size": len(data), "data": base64.b64encode(part).decode()},
        }
        answer = BytesIO(json.dumps(text).encode())
        answer.getcode, answer.headers = lambda: 200, {}  # type: ignore[attr-defined]
        return answer


AGENTS = {
    "S1": {"agent_info": {"id": {"value": "S1"}, "hostname": "gpu1", "port": 5052}, "pid": "slave(1)@x:5052"}
}
FOLDER = "/frameworks/F1/executors/a/runs/latest"


def sandboxes(agents: Agents, most: int = 8) -> Sandboxes:
    connection = Connection(["https://m1:5050"], "operator", "a secret")
    clock = iter(range(1000))
    return Sandboxes(
        connection, AGENTS, most, opener=agents, sleep=lambda _seconds: None, clock=lambda: next(clock) * 10.0
    )


def one_task(**other: Any) -> console.Task:
    (found,) = console.read_tasks({"tasks": [entry("a", "TASK_RUNNING", **other)]})
    return found


def test_the_end_of_both_streams_is_read_with_the_masters_scheme_and_login() -> None:
    agents = Agents({f"{FOLDER}/stdout": b"0123456789", f"{FOLDER}/stderr": b""})
    found = sandboxes(agents).printed(one_task())
    assert found == {"stdout": "23456789", "stderr": "", "cut": ["stdout"], "unread": "", "machine": "gpu1"}
    assert {url for url, _login in agents.asked} == {"https://gpu1:5052/slave(1)/api/v1"}
    assert all(login and login.startswith("Basic ") for _url, login in agents.asked)


def test_an_agent_that_is_away_is_asked_once() -> None:
    agents = Agents({})
    agents.away = True
    reading = sandboxes(agents)
    for _again in range(3):
        found = reading.printed(one_task())
        assert found["unread"] == "The agent on gpu1 does not answer." and found["machine"] == "gpu1"
    assert len(agents.asked) == 1


def test_files_that_are_gone_and_agents_that_are_unknown_are_told() -> None:
    found = sandboxes(Agents({})).printed(one_task())
    assert found["unread"] == "The agent on gpu1 has no files of this task any more."
    found = sandboxes(Agents({})).printed(one_task(agent_id={"value": "S9"}))
    assert found["unread"] == "Its agent is not registered with Mesos." and found["machine"] == ""
    found = sandboxes(Agents({})).printed(one_task(agent_id=None))
    assert found["unread"] == "No agent has it yet."


def test_output_that_is_half_there_is_not_taken_for_all() -> None:
    found = sandboxes(Agents({f"{FOLDER}/stdout": b"x"})).printed(one_task())
    assert found["stdout"] == "" and found["unread"]
