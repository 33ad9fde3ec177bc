# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as jobs of Slurm (an `Engine`).

A job is found by a note of its hub at it, so no restart of the hub loses one, and hubs that share a cluster
leave each other's alone.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from gpufarm_hub.spawning.engine import Death, EngineError

from . import client, queue, submission
from .queue import Job

# Of the authority for nodes, by which jobs know their hub and the hub its jobs. The role makes it.
AUTHORITY = Path("/etc/jupyterhub/nodes/ca.crt")

PREFIX = "slurm:"  # what the units of all notebooks begin with

QUEUE_AGE = 3  # seconds; less than the hub waits between two questions for the same notebook
USE_AGE = 20  # seconds; less than the keeper waits
USE_WITHIN = 20  # seconds for all jobs; sstat waits about as long for each node that does not answer

# Seconds that the processes of a job may take to end: Slurm's default for KillWait is 30.
ENDS_WITHIN = 90
PAUSE = 1  # seconds between two looks


def name_of(owner: str) -> str:
    """Return the unit of a notebook.

    Args:
        owner: user and server name, ``alice/`` for the default server.
    """
    return f"{PREFIX}{owner}"


def owner_of(unit: str) -> str:
    """Return the owner of a notebook's unit: the opposite of `name_of`."""
    return unit.removeprefix(PREFIX)


def _hub() -> str:
    try:
        return submission.hub_of(AUTHORITY.read_bytes())
    except OSError as error:
        raise EngineError(f"the hub does not know which jobs are its own: {error}") from error


def _ask_jobs() -> list[Job]:
    # Jobs that are over stay there for a while (slurm.conf(5), MinJobAge), so that they tell how they ended.
    hub, command = _hub(), ["squeue", "--states=all"]
    try:
        # The JSON of a job has some thousand letters, and most jobs of a cluster are no notebooks.
        ours = queue.numbers(client.run([*command, "--noheader", f"--Format={queue.LISTED}"]), hub)
        chosen = f"--jobs={','.join(map(str, ours))}"
        return queue.read(client.run([*command, "--json", chosen]), hub) if ours else []
    except ValueError as error:
        raise EngineError(str(error)) from error


def _ask_use() -> dict[int, float]:
    running = [str(job.number) for job in JOBS.get() if not job.is_over and not job.waits]
    if not running:
        return {}
    command = ["sstat", "--allsteps", "--noheader", "--parsable2", "--format=JobID,TRESUsageInTot"]
    try:
        return queue.read_use(client.run([*command, f"--jobs={','.join(running)}"], within=USE_WITHIN))
    except ValueError as error:
        raise EngineError(f"sstat printed no use of jobs ({error!r:.200})") from error


JOBS = client.Shared(_ask_jobs, QUEUE_AGE)
_USE = client.Shared(_ask_use, USE_AGE)


def submit(order: submission.Order, script: str) -> int:
    """Queue the job of a notebook; return its number.

    A job without a note, as the hub has died in between, is nobody's: it asks the hub in vain, and ends.

    Raises:
        RefusedError: Slurm does not take it.
        EngineError: Slurm does not answer.
    """
    hub = _hub()
    printed = client.run(submission.arguments(order), script)
    try:
        # With several clusters the name of the cluster comes after a semicolon (sbatch(1), --parsable).
        number = int(printed.partition(";")[0])
    except ValueError as error:
        raise EngineError(f"sbatch printed no number of a job ({printed!r:.200})") from error
    try:
        client.run(submission.noting(number, order, hub))
    except EngineError as error:
        with contextlib.suppress(EngineError):
            client.run(["scancel", str(number)])
        raise EngineError(f"job {number} was cancelled, as it cannot be marked: {error}") from error
    JOBS.forget()
    return number


def job_of(unit: str) -> Job | None:
    """Return the job of a notebook that was queued last; None if there is none.

    Raises:
        EngineError: Slurm does not answer.
    """
    return queue.latest(JOBS.get(), owner_of(unit))


def _active(unit: str) -> list[Job]:
    return [job for job in JOBS.get() if job.owner == owner_of(unit) and not job.is_over]


def running() -> list[str]:
    """Return the units of all notebooks that are not over, also of those that wait.

    Raises:
        EngineError: Slurm does not answer.
    """
    return sorted({name_of(job.owner) for job in JOBS.get() if not job.is_over})


def reach() -> dict[str, frozenset[str]]:
    """Return nothing: no unit opens a GPU of this machine, and Slurm guards those of nodes."""
    return {}


def processes(unit: str) -> frozenset[int]:
    """Return no process ids: those of a job are of another machine."""
    return frozenset()


def is_over(unit: str) -> bool:
    """Tell whether no process of the unit is left, and none is to come.

    Raises:
        EngineError: Slurm does not answer.
    """
    return not _active(unit)


def death(unit: str) -> Death | None:
    """Return how a unit that is over has failed; None if it did not, or if that is forgotten.

    Raises:
        EngineError: Slurm does not answer.
    """
    job = job_of(unit)
    return queue.death(job, _canceller(job)) if job and job.is_over else None


def _canceller(job: Job) -> int | None:
    """Return the id of the user that cancelled a job; None if none did, or the accounting does not tell."""
    if "CANCELLED" not in job.states:
        return None
    command = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=State"]
    try:
        return queue.read_canceller(client.run([*command, f"--jobs={job.number}"]))
    except EngineError:
        return None


def stop(unit: str) -> None:
    """Cancel the unit, and wait until it is over.

    Raises:
        EngineError: it still runs, or Slurm does not answer.
    """
    deadline = time.monotonic() + ENDS_WITHIN
    cancelled: set[int] = set()
    while active := _active(unit):
        if time.monotonic() > deadline:
            raise EngineError(f"job {active[0].number} still runs after it was cancelled")
        if more := {job.number for job in active} - cancelled:
            client.run(["scancel", *map(str, sorted(more))])
            cancelled |= more
        else:
            time.sleep(PAUSE)
        JOBS.forget()


def cpu_seconds(unit: str) -> float | None:
    """Return the seconds of CPU time that the unit's processes have taken; None where nobody tells.

    That is so without a plugin that gathers, when one of the jobs has ended meanwhile, and when a node does
    not answer: the notebooks on others must be looked at all the same.

    Raises:
        EngineError: Slurm does not answer.
    """
    job = job_of(unit)
    try:
        return _USE.get().get(job.number) if job else None
    except EngineError:
        return None


def revoke_devices(unit: str) -> None:
    """Do nothing: the devices of nodes are Slurm's, and no slice of this machine was given."""


def resumable() -> list[str]:
    """Return the units that wait, or have just begun.

    Raises:
        EngineError: Slurm does not answer.
    """
    return running()
