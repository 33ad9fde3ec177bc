# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs, slices and nodes of a Slurm cluster as metrics for Prometheus. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .page import Page

# Entries of a Gres line with a type, as in "gpu:1g.10gb:2(IDX:2-3)" (slurm.conf(5), Gres).
SLICES = re.compile(r"\bgpu:([^:,()]+):([0-9]+)")
# Tasks of a job array that wait, as in "2,4-9:2%1" (sbatch(1), --array).
TASKS = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([1-9][0-9]*))?)?")
# Reasons of jobs that wait for their turn (squeue(1), JOB REASON CODES).
WAITS = frozenset({"None", "Priority", "ReqNodeNotAvail", "Resources"})
# Reasons of jobs that nothing can run until somebody changes the job, the limits or the cluster (the same).
STUCK = re.compile(
    r"AccountNotAllowed|BadConstraints|DependencyNeverSatisfied|InvalidAccount|InvalidQOS|JobHoldMaxRequeue"
    r"|NodeDown|PartitionConfig|PartitionDown|PartitionInactive|PartitionNodeLimit|PartitionTimeLimit"
    r"|QOSNotAllowed|(Assoc|QOS)Max\w+PerJob(Limit)?"
)
# A limit of minutes and what is used of it, as in "gres/gpu=60000(12)" (src/scontrol/info_assoc_mgr.c).
BUDGET = re.compile(r"([^=,]+)=([0-9]+)\(([0-9]+)\)")
# States and flags of nodes that take no job, and are not meant to be so.
UNUSABLE = frozenset(
    {"DOWN", "DRAIN", "ERROR", "FAIL", "INVALID", "INVALID_REG", "NOT_RESPONDING", "UNKNOWN"}
)
# Those that take no job, and are meant to be so.
RESERVED = frozenset({"FUTURE", "MAINTENANCE"})

Samples = list[tuple[Mapping[str, str], float]]


@dataclass(frozen=True)
class Cluster:
    """Answers of Slurm.

    `controllers` has whether each answers, by its name, the one that leads first. `jobs` and `nodes` are
    those of `squeue --json` and `scontrol show nodes --json`; None if they were not asked for, or not told.
    `associations` is what `scontrol show assoc_mgr flags=assoc --oneliner` prints.
    """

    controllers: Mapping[str, bool]
    jobs: Sequence[Mapping[str, Any]] | None = None
    nodes: Sequence[Mapping[str, Any]] | None = None
    associations: str = ""


def controllers(ping: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether each controller answers, by its name, from the answer of `scontrol ping --json`."""
    return {one["hostname"]: bool(one["responding"]) for one in ping["pings"]}


def reporter(up: Mapping[str, bool]) -> str:
    """Return the controller that alone tells of jobs and nodes; empty if none answers."""
    return next((name for name, answers in up.items() if answers), "")


def render(cluster: Cluster, problem: str, now: float) -> str:
    """Return the metrics of a cluster.

    Args:
        problem: why not all was told, empty if it was.
        now: when it was read, in seconds since 1970.
    """
    page = Page()
    page.add(
        "gpufarm_slurm_controller_up",
        "Whether a controller of Slurm answers.",
        [({"controller": name}, float(answers)) for name, answers in cluster.controllers.items()],
    )
    if cluster.jobs is not None:
        _add_jobs(page, cluster.jobs, now)
    if cluster.nodes is not None:
        _add_nodes(page, cluster.nodes)
    _add_budgets(page, cluster.associations)
    page.add("gpufarm_slurm_metrics_up", "Whether Slurm told all that was asked.", [({}, float(not problem))])
    page.add("gpufarm_slurm_metrics_last_run_timestamp_seconds", "When Slurm was asked.", [({}, round(now))])
    return page.text()


def _add_jobs(page: Page, jobs: Sequence[Mapping[str, Any]], now: float) -> None:
    states: Counter[tuple[str, ...]] = Counter()
    stuck: Counter[tuple[str, ...]] = Counter()
    held: Counter[tuple[str, ...]] = Counter()
    waits: dict[str, list[float]] = {}
    for job in jobs:
        partition, state, reason = job["partition"], job["job_state"][0], job["state_reason"]
        tasks = _tasks(job["array_task_string"])
        states[partition, state.lower()] += tasks
        for profile, number in _slices(",".join(job["gres_detail"])):
            held[job["account"], profile] += number
        if state != "PENDING":
            continue
        since = job["eligible_time"]["number"]
        if STUCK.fullmatch(reason):
            stuck[partition, reason] += tasks
        elif reason in WAITS and 0 < since <= now:
            waits.setdefault(partition, []).append(now - since)
    page.add("gpufarm_slurm_jobs", "Jobs.", _by(states, "partition", "state"))
    page.add(
        "gpufarm_slurm_jobs_stuck",
        "Jobs that wait and that nothing can run, by Slurm's reason.",
        _by(stuck, "partition", "reason"),
    )
    for name, text, value in (
        ("longest", "Longest wait of the jobs that wait for their turn.", max),
        ("mean", "Mean wait of the jobs that wait for their turn.", lambda found: sum(found) / len(found)),
    ):
        page.add(
            f"gpufarm_slurm_wait_{name}_seconds",
            text,
            [({"partition": partition}, value(found)) for partition, found in sorted(waits.items())],
        )
    page.add(
        "gpufarm_slurm_slices_held",
        "Slices, or whole GPUs, that jobs have.",
        _by(held, "account", "profile"),
    )


def _add_nodes(page: Page, nodes: Sequence[Mapping[str, Any]]) -> None:
    states: Counter[tuple[str, ...]] = Counter()
    total: Counter[tuple[str, ...]] = Counter()
    idle: Counter[tuple[str, ...]] = Counter()
    unusable: Samples = []
    for node in nodes:
        state = "+".join(node["state"]).lower()
        states[state,] += 1
        used = Counter(dict(_slices(node["gres_used"])))
        takes_jobs = not {*node["state"]} & (UNUSABLE | RESERVED)
        for profile, number in _slices(node["gres"]):
            total[profile,] += number
            idle[profile,] += number - used[profile] if takes_jobs else 0
        if {*node["state"]} & UNUSABLE:
            unusable.append(({"node": node["name"], "state": state, "reason": node["reason"]}, 1))
    page.add("gpufarm_slurm_nodes", "Nodes.", _by(states, "state"))
    page.add("gpufarm_slurm_node_unusable", "A node that takes no job, and why; the value is 1.", unusable)
    page.add("gpufarm_slurm_slices", "Slices, or whole GPUs, of all nodes.", _by(total, "profile"))
    page.add(
        "gpufarm_slurm_slices_idle",
        "Slices, or whole GPUs, that no job has, on nodes that take jobs.",
        _by(idle, "profile"),
    )


def _add_budgets(page: Page, associations: str) -> None:
    limits: dict[tuple[str, ...], float] = {}
    used: dict[tuple[str, ...], float] = {}
    for line in associations.splitlines():
        values = {key: value for key, sign, value in (word.partition("=") for word in line.split()) if sign}
        # Those of users have limits of their own, which the account does not share.
        if values.get("UserName") or "Account" not in values:
            continue
        for resource, minutes, spent in BUDGET.findall(values.get("GrpTRESMins", "")):
            key = values["Account"], resource.removeprefix("gres/")
            limits[key], used[key] = int(minutes) / 60, int(spent) / 60
    labels = "account", "resource"
    page.add("gpufarm_slurm_budget_hours", "Hours that an account may use.", _by(limits, *labels))
    page.add("gpufarm_slurm_budget_used_hours", "Hours that it has used of them.", _by(used, *labels))


def _slices(gres: str) -> Iterator[tuple[str, int]]:
    for profile, number in SLICES.findall(gres):
        yield profile, int(number)


def _tasks(array: str) -> int:
    """Return the number of tasks of an entry of the queue; 1 for what is no array."""
    found = TASKS.findall(array.partition("%")[0])
    counts = [(int(last or first) - int(first)) // int(step or 1) + 1 for first, last, step in found]
    return max(1, sum(counts))


def _by(found: Mapping[tuple[str, ...], float], *names: str) -> Samples:
    return [(dict(zip(names, key)), number) for key, number in sorted(found.items())]
