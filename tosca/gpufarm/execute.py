# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries out steps: as many Ansible processes as kinds of machine, failures and dependencies call for."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufarm import ansible, run, waves
from gpufarm.errors import GpufarmError, Interrupted
from gpufarm.plan import Step
from gpufarm.recorded import Claim
from gpufarm.run import Done, Listener, Outcome
from gpufarm.state import Deployment, Store

# Ansible processes side by side; each forks for its machines, and takes about 100 MB.
AT_ONCE = 4


@dataclass
class Report:
    """Results of steps.

    Attributes:
        log: file with Ansible's output.
        done: names of the steps that are done.
        failed: one sentence about each that failed, by name.
        skipped: names of those that were not run because they need one that failed.
        failure: one sentence about what went wrong outside of any step; empty if nothing did.
        canceled: whether a signal stopped the run.
        records: of each machine, of a check only.
    """

    log: Path
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    failure: str = ""
    canceled: bool = False
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def sentence(self) -> str:
        """Say what went wrong.

        Returns:
            One sentence; empty if nothing did.
        """
        parts = list(self.failed.values())
        if self.failure:
            parts.append(self.failure)
        if self.skipped:
            parts.append(f"not run because of that: {', '.join(sorted(self.skipped))}")
        return "; ".join(parts)

    def conclude(self) -> None:
        """End the run.

        Raises:
            Interrupted: a signal stopped it.
            GpufarmError: something failed.
        """
        if self.canceled:
            raise Interrupted(f"interrupted; run the same command again to continue (log: {self.log})")
        if self.failed or self.failure:
            raise GpufarmError(f"{self.sentence()} (log: {self.log})")


def carry_out(
    store: Store,
    deployment: Deployment,
    steps: list[Step],
    inventory: Path,
    listener: Listener,
    *,
    check: bool = False,
    take_over: bool = False,
) -> Report:
    """Run steps. A failure stops only what needs the step that failed.

    Args:
        store: the state; has the folders for the run and its log.
        deployment: whose lock is held.
        steps: each after those that it needs.
        inventory: the pool.
        listener: told how it goes.
        check: only say what would change.
        take_over: whether roles may replace what was made for others with other settings.

    Returns:
        Results of the steps.
    """
    report = Report(store.log(deployment.name))
    claim = Claim(deployment.owner, take_over)
    ansible.end_leftovers(store.run_path(deployment.name))
    with store.run_directory(deployment.name) as directory, ansible.signals() as stop:
        while not report.canceled and not report.failure:
            left = _left(steps, report)
            part = waves.segment(left, report.done)
            if not part:
                break
            outcomes = _side_by_side(
                part, claim, inventory, directory, report.log, listener, stop, check=check
            )
            for outcome in outcomes:
                report.done |= outcome.done
                report.failed |= outcome.failed
                report.records |= outcome.records
            report.failure = "; ".join(filter(None, (outcome.failure for outcome in outcomes)))
            report.canceled = stop.is_set()
            idle = not any(outcome.done or outcome.failed for outcome in outcomes)
            if idle and not report.canceled and not report.failure:
                report.failure = "Ansible has run nothing, and does not say why"
    report.skipped = waves.depending(steps, report.failed.keys()) - report.done
    return report


class _OneAtATime:
    """Lets several processes tell one listener."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.lock = threading.Lock()

    def started(self, step: Step) -> None:
        with self.lock:
            self.listener.started(step)

    def task(self, step: Step, name: str) -> None:
        with self.lock:
            self.listener.task(step, name)

    def finished(self, step: Step, done: Done) -> None:
        with self.lock:
            self.listener.finished(step, done)

    def failed(self, step: Step, failure: str, done: Done) -> None:
        with self.lock:
            self.listener.failed(step, failure, done)


def _side_by_side(
    steps: list[Step],
    claim: Claim,
    inventory: Path,
    directory: Path,
    log: Path,
    listener: Listener,
    stop: threading.Event,
    *,
    check: bool,
) -> list[Outcome]:
    """Run each lane in a process of its own."""
    lanes = waves.lanes(steps)
    told = _OneAtATime(listener)

    def one(number: int, lane: list[Step]) -> Outcome:
        own = directory / str(number)
        own.mkdir(mode=0o700, exist_ok=True)
        hosts = list(dict.fromkeys(step.host for step in lane))
        more = f" +{len(hosts) - 1}" if hosts[1:] else ""
        label = f"[{hosts[0]}{more}] " if lanes[1:] else ""
        return run.run(lane, claim, inventory, own, log, told, stop, label=label, check=check)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(len(lanes)), lanes))


def _left(steps: list[Step], report: Report) -> list[Step]:
    over: Collection[str] = report.done | report.failed.keys()
    blocked = waves.depending(steps, report.failed.keys())
    return [step for step in steps if step.name not in over and step.name not in blocked]
