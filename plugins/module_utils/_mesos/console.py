# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks as a master tells them, and what they have printed, fit for a page and a terminal. No I/O.

Sources: apache/mesos 1.11.0, include/mesos/v1/mesos.proto (TaskState, TaskStatus),
docs/operator-http-api.md (GET_TASKS, READ_FILE); src/slave/paths.cpp, getExecutorVirtualPath;
mesos/chronos 3.0.2, TaskUtils.scala (ids of tasks are ``ct:DUE:ATTEMPT:JOB:ARGUMENTS``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Callable, NamedTuple

STREAMS = ("stdout", "stderr")
WAITING, RUNNING, SUCCEEDED, FAILED, KILLED, LOST = (
    "waiting",
    "running",
    "succeeded",
    "failed",
    "killed",
    "lost",
)
STATES = {
    "TASK_STAGING": WAITING,
    "TASK_STARTING": WAITING,
    "TASK_RUNNING": RUNNING,
    "TASK_KILLING": RUNNING,
    "TASK_FINISHED": SUCCEEDED,
    "TASK_FAILED": FAILED,
    "TASK_ERROR": FAILED,
    "TASK_KILLED": KILLED,
}
OVER = (SUCCEEDED, FAILED, KILLED, LOST)
# Seconds since 1970 until the year 9999, the last one that calendars of Python have.
LATEST = 253370764800.0
# Letters of a reason; the longest of Mesos' own have some hundred.
LONGEST_REASON = 500

# Sequences of ECMA-48 in their forms of 7 and 8 bits: strings to their end, control sequences, others.
ESCAPES = re.compile(
    "(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|\x1b[ -/]*[0-~]?"
)
# Other control characters, those that turn the direction of what follows, and what is no character.
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")


class ConsoleError(ValueError):
    """The tasks cannot be told; the text is one sentence for a user."""


class Task(NamedTuple):
    """A task.

    Attributes:
        id: its own; no other task has it.
        framework: id of the framework that has started it.
        agent: id of the agent that runs it.
        executor: id of the executor, which has the folder of the task.
        state: one of the words of this module.
        reason: why it is in this state, if Mesos says so.
        begun: seconds since 1970; 0 for not yet.
        ended: seconds since 1970; 0 for not yet.
    """

    id: str
    framework: str
    agent: str
    executor: str
    state: str
    reason: str
    begun: float
    ended: float


def read_tasks(answer: Mapping[str, Any]) -> list[Task]:
    """Return the tasks that GET_TASKS tells, those that began last first."""
    kinds = ("pending_tasks", "tasks", "unreachable_tasks", "completed_tasks", "orphan_tasks")
    # a task that is told twice is in the state of the first list
    found: dict[tuple[str, str], Task] = {}
    for kind in kinds:
        for entry in answer.get(kind) or ():
            task = _task(entry)
            found.setdefault((task.framework, task.id), task)
    return sorted(found.values(), key=lambda one: (one.begun or float("inf"), one.id), reverse=True)


def _task(entry: Mapping[str, Any]) -> Task:
    statuses = entry.get("statuses") or []
    own = entry["task_id"]["value"]
    state = STATES.get(entry.get("state", ""), LOST)
    last = statuses[-1] if statuses else {}
    ran = [one for one in statuses if one.get("state") == "TASK_RUNNING"] or statuses
    executors = [one["executor_id"] for one in (entry, *statuses) if one.get("executor_id")]
    return Task(
        id=own,
        framework=entry["framework_id"]["value"],
        agent=(entry.get("agent_id") or {}).get("value", ""),
        # a command has an executor of its own, with the id of the task
        executor=executors[-1]["value"] if executors else own,
        state=state,
        reason=_reason(last, state),
        begun=_moment(ran[0]) if ran else 0.0,
        ended=_moment(last) if state in OVER else 0.0,
    )


def _moment(status: Mapping[str, Any]) -> float:
    """Return the time of a status; an executor may have written anything there."""
    found = status.get("timestamp", 0.0)
    fits = isinstance(found, (int, float)) and 0 < found < LATEST
    return float(found) if fits else 0.0


def _reason(status: Mapping[str, Any], state: str) -> str:
    """Return the words of a status that tell more than the state."""
    if state in (RUNNING, SUCCEEDED):
        return ""
    code = str(status.get("reason", "")).removeprefix("REASON_").replace("_", " ").lower()
    said = " ".join(cleaned(str(status.get("message", ""))).split())
    found = said or ("" if code == "command executor failed" else code)
    return found[:LONGEST_REASON]


def of_job(name: str) -> Callable[[Task], bool]:
    """Return whether a task is a run of a job of Chronos.

    Args:
        name: of the job.
    """
    own = re.compile(rf"ct:\d+:\d+:{re.escape(name)}:.*", re.DOTALL)
    return lambda task: bool(own.fullmatch(task.id))


def runs_of(tasks: Iterable[Task], job: str, frameworks: Collection[str]) -> list[Task]:
    """Return the runs of a job.

    Args:
        tasks: of all frameworks.
        job: its name.
        frameworks: ids of those that are registered; others are of a Chronos that is gone.

    Raises:
        ConsoleError: jobs of this name run for several frameworks, so nothing tells whose these are.
    """
    mine = of_job(job)
    found = [task for task in tasks if task.framework in frameworks and mine(task)]
    owners = sorted({task.framework for task in found})
    if len(owners) > 1:
        raise ConsoleError(
            f"Jobs with the name {job} run for {len(owners)} frameworks of Mesos ({', '.join(owners)}), so"
            " nothing tells whose runs these are; give the job another name."
        )
    return found


def folder(task: Task) -> str:
    """Return the path of the folder of a task, as its agent knows it."""
    return f"/frameworks/{task.framework}/executors/{task.executor}/runs/latest"


def readable(data: bytes, begins: bool) -> str:
    """Return what a program has printed as a text that is safe to show.

    Escape sequences are left out. A line that the program wrote again and again, as a bar of progress, is
    there as it was in the end. All else that is no text is a replacement character.

    Args:
        data: what it has printed.
        begins: whether this is the beginning; if not, a character of which the end is left is left out.
    """
    if not begins:
        data = data.lstrip(bytes(range(0x80, 0xC0)))
    return cleaned(data.decode("utf-8", "replace"))


def cleaned(text: str) -> str:
    """Return a text without what a terminal or a page would take for a command."""
    plain = ESCAPES.sub("", text).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return UNFIT.sub("\ufffd", "\n".join(lines))
