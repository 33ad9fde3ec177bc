# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs of notebooks as squeue tells them. No I/O."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufarm_hub.spawning.engine import Death

from . import submission

# squeue(1), JOB STATE CODES, of jobs that are over.
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)


class QueueError(ValueError):
    """The output of squeue is no list of jobs."""


@dataclass(frozen=True)
class Job:
    """The job of a notebook.

    Attributes:
        number: that Slurm has given it.
        owner: user and server name of the notebook.
        mark: what tells its order from others (`submission.mark`).
        uid: the user's.
        states: its state, and flags such as ``COMPLETING``.
        reason: why it waits, or why it has ended, in Slurm's word.
        start: when it has started or is expected to, in seconds since the epoch; None where nobody knows.
        end: when its time is over, in seconds since the epoch; None where that is not known.
        gpus: the GPUs or slices that it asks for, such as ``3g.40gb:1``; empty for none.
        node: where it runs; empty while it waits.
        status: exit status of its program.
        signal: that has ended it; 0 for none.
    """

    number: int
    owner: str
    mark: str
    uid: int
    states: tuple[str, ...]
    reason: str
    start: float | None
    end: float | None
    gpus: str
    node: str
    status: int
    signal: int

    @property
    def waits(self) -> bool:
        """Whether it is in the queue."""
        return "PENDING" in self.states

    @property
    def is_over(self) -> bool:
        """Whether no process of it is left."""
        return bool(ENDED.intersection(self.states)) and "COMPLETING" not in self.states

    def may_ask(self, within: float, now: float) -> bool:
        """Tell whether the job waits, or has begun so lately that it may still ask the hub what to do.

        Args:
            within: seconds after its start in which it asks.
            now: seconds since the epoch.
        """
        begun = self.start if self.start is not None else math.inf
        return not self.is_over and (self.waits or now < begun + within)


LISTED = "JobID:20,admin_comment:60"  # squeue(1), --Format; 60 letters hold a hub's name


def numbers(text: str, hub: str) -> list[int]:
    """Return the numbers of a hub's jobs in what ``squeue --Format`` has printed for `LISTED`."""
    lines = (line.split() for line in text.splitlines())
    return [int(words[0]) for words in lines if len(words) > 1 and words[1].startswith(f"{hub}:")]


def read(text: str, hub: str) -> list[Job]:
    """Return the jobs of a hub's notebooks in what ``squeue --json`` has printed.

    Name and comment of a job are its user's to change, and a user id has no name while a directory is away.
    So nothing counts but the hub's own note.

    Args:
        text: that it has printed.
        hub: name of the hub (`submission.hub_of`).

    Raises:
        QueueError: that is no list of jobs.
    """
    try:
        found = [_job(entry, hub) for entry in json.loads(text)["jobs"]]
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise QueueError(f"squeue printed no list of jobs ({error!r:.200})") from error
    return [job for job in found if job]


def _job(entry: Mapping[str, Any], hub: str) -> Job | None:
    noted = submission.read_note(entry["admin_comment"], hub)
    if noted is None:
        return None
    owner, mark = noted
    states = entry["job_state"]
    ended = entry["exit_code"]
    return Job(
        number=int(entry["job_id"]),
        owner=owner,
        mark=mark,
        uid=int(entry["user_id"]),
        states=tuple([states] if isinstance(states, str) else states),
        reason=entry["state_reason"],
        start=_number(entry["start_time"]) or None,
        end=_number(entry["end_time"]) or None,
        gpus=entry["tres_per_node"].removeprefix("gres/gpu:"),
        node=entry["nodes"] if isinstance(entry["nodes"], str) else "",
        status=int(_number(ended["return_code"])),
        signal=int(_number(ended["signal"]["id"])),
    )


def _number(value: Any) -> float:
    """Return a number of Slurm's JSON, 0 where it is not set (data_parser plugins since 23.02)."""
    if isinstance(value, Mapping):
        return float(value["number"]) if value["set"] and not value["infinite"] else 0.0
    return float(value)


def latest(jobs: Iterable[Job], owner: str) -> Job | None:
    """Return the job of a notebook that was queued last; None if there is none."""
    return max((job for job in jobs if job.owner == owner), key=lambda job: job.number, default=None)


# squeue(1), JOB REASON CODES, of jobs that failed because of the machine that they were on.
OF_THE_NODE = ("JobLaunchFailure", "NodeDown", "SystemFailure")


# The signal that slurmstepd reports when it cannot open the files of a batch script (Slurm's frequently asked
# questions, on jobs that fail with exit status 0:53).
NO_FILES = 53


def death(job: Job, canceller: int | None) -> Death | None:
    """Return how the job of a notebook has failed; None if it did not, or if its user has cancelled it.

    Args:
        job: that is over.
        canceller: id of the user that has cancelled it; None if that is not known.
    """
    states = {*job.states}
    if states & {"COMPLETED"} or ("CANCELLED" in states and canceller == job.uid):
        return None
    if "OUT_OF_MEMORY" in states:
        return Death("memory")
    if states & {"TIMEOUT", "DEADLINE"}:
        return Death("time")
    if "PREEMPTED" in states:
        return Death("preempted")
    if "CANCELLED" in states:
        return Death("cancelled" if canceller is None else "administrator")
    if job.signal == NO_FILES:
        return Death("home")
    if states & {"BOOT_FAIL", "NODE_FAIL"} or job.reason in OF_THE_NODE:
        return Death("node")
    return Death("signal", job.signal) if job.signal else Death("status", job.status)


def read_canceller(text: str) -> int | None:
    """Return the user id in a state such as ``CANCELLED by 0`` (sacct(1)); None if there is none."""
    found = re.match(r"CANCELLED by (\d+)\b", text)
    return int(found[1]) if found else None


def read_use(text: str) -> dict[int, float]:
    """Return the seconds of CPU time of each job in what sstat has printed.

    Args:
        text: lines of a step, such as ``12.batch``, and its use, such as ``cpu=00:01:05,mem=96M``.
    """
    found: dict[int, float] = {}
    for step, _bar, use in (line.partition("|") for line in text.splitlines()):
        number = int(re.split(r"[._+]", step)[0])
        time = re.search(r"(?:^|,)cpu=(?:(\d+)-)?(\d+):(\d+):(\d+)", use)
        days, hours, minutes, seconds = (int(part or 0) for part in time.groups()) if time else (0, 0, 0, 0)
        found[number] = found.get(number, 0.0) + 86400 * days + 3600 * hours + 60 * minutes + seconds
    return found
