# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs steps in one Ansible process and reduces what happens to what a person needs to know."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from gpufarm import ansible, recorded, waves
from gpufarm.plan import Step
from gpufarm.pool import reason
from gpufarm.recorded import Claim
from gpufarm.waves import Play


@dataclass
class Done:
    """Result of a step.

    Attributes:
        attributes: what it returned.
        tasks: names of the tasks that changed something, or would, or may have when the machine was lost.
        seconds: how long it took.
    """

    attributes: dict[str, Any] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Listener(Protocol):
    """Observer of a run."""

    def started(self, step: Step) -> None:
        """A step begins."""

    def task(self, step: Step, name: str) -> None:
        """A task of the step begins."""

    def finished(self, step: Step, done: Done) -> None:
        """A step is done."""

    def failed(self, step: Step, failure: str, done: Done) -> None:
        """A step has failed, after it did some of what it does."""


class Data(dict[str, Any]):
    """Values that Ansible must not take for templates, however deep a text is in them.

    The tag stands on the mapping: Ansible reads a text ``!unsafe "535"`` as a number. Inside the mapping it
    trusts no text, no key either, and reads each as its quotes say.
    """


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: an alias would be trusted or not as the place of its anchor is."""
        return True


_Dumper.add_representer(Data, lambda dumper, data: dumper.represent_mapping("!unsafe", data.items()))


def compile_playbook(plays: Iterable[Play], claim: Claim, *, check: bool = False) -> str:
    """Write the playbook that imports the playbooks of all steps, each with its variables.

    Args:
        plays: in order.
        claim: for whom they make something.
        check: whether the run only says what would change; then it reads the records too.

    Returns:
        The playbook. It contains secrets in clear. Its first play compares the machines with their records.

    Raises:
        BadInput: the playbook of a step is not exactly one play.
    """
    listed = list(plays)
    return dump([_comparison(listed, claim, check=check), *imports(listed, claim)])


def imports(plays: Iterable[Play], claim: Claim) -> list[dict[str, Any]]:
    """Return what a playbook says to import the playbooks of all steps, each with its variables.

    Args:
        plays: in order.
        claim: for whom they make something.
    """
    return [
        {
            "import_playbook": str(first.playbook),
            "vars": {
                **{
                    name: f"{{{{ gpufarm_values[inventory_hostname][{name!r}] }}}}"
                    for name in first.variables
                },
                "gpufarm_hosts": list(play.steps),
                **claim.variables(),
                "gpufarm_values": Data({host: step.variables for host, step in play.steps.items()}),
            },
        }
        for play in plays
        for first in [next(iter(play.steps.values()))]
    ]


def dump(plays: list[dict[str, Any]]) -> str:
    """Return the text of a playbook.

    Args:
        plays: as Ansible reads them.
    """
    # Escaped: readers take the line breaks of Unicode for spaces.
    return yaml.dump(plays, Dumper=_Dumper, sort_keys=False, width=1000)


def _comparison(plays: Iterable[Play], claim: Claim, *, check: bool) -> dict[str, Any]:
    """Return the play that compares each machine with the records of its roles, in one call.

    A machine that fails or cannot be reached fails in the play of a step, which can be told.
    """
    known: dict[Path, str] = {}
    roles: dict[str, list[tuple[str, Step]]] = {}
    for play in plays:
        for host, step in play.steps.items():
            if step.playbook not in known:
                known[step.playbook] = recorded.role(step.playbook)
            roles.setdefault(host, []).append((known[step.playbook], step))
    asked = {
        host: {
            role: step.variables
            for role, step in named
            if role and [other for other, _step in named].count(role) == 1  # of two runs the record knows one
        }
        for host, named in roles.items()
    }
    task = {
        "name": "Compare the machine with the records of its roles",
        "gpufarm.cluster.role_record": {
            "step": "probe",
            "roles": "{{ gpufarm_roles[inventory_hostname] }}",
        },
        "register": recorded.VARIABLE,
    }
    told = {"name": "Read the records of the machine", "gpufarm.cluster.machine_record_info": {}}
    return {
        "name": "Records",
        "hosts": [host for host, named in asked.items() if named or check] or ["!all"],
        "gather_facts": False,
        "become": True,
        "ignore_errors": True,
        "ignore_unreachable": True,
        "vars": {**claim.variables(), "gpufarm_roles": Data(asked)},
        "tasks": [task, told] if check else [task],
    }


@dataclass
class Outcome:
    """How a run ended.

    Attributes:
        status: ``successful``, ``failed`` or ``canceled``.
        done: names of the steps that are done.
        failed: one sentence about each step that failed, by name.
        failure: one sentence about what went wrong outside of any step; empty if nothing did.
        records: of each machine, as the module machine_record_info tells them; of a check only.
    """

    status: str
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


class _Watch:
    """Follows the events of a run.

    Ansible drops a machine after a failure, unless a rescue mends it, and says so only at its very end. Until
    a machine goes on or the end is told, a step in which a task failed is in doubt.
    """

    def __init__(
        self,
        plays: list[Play],
        playbook: Path,
        listener: Listener,
        masked: tuple[str, ...],
        log: Any,
        label: str,
    ) -> None:
        self.plays = plays
        self.playbook = playbook
        self.listener = listener
        self.masked = masked
        self.log = log
        self.label = label
        self.outcome = Outcome("failed")
        self.index = -2  # the first play, of the comparison, belongs to no step
        self.began = 0.0
        self.task = ""
        self.running: dict[str, Done] = {}
        self.answered: set[str] = set()  # hosts that gave a result in this play
        self.doubtful: dict[str, tuple[Step, Done, str]] = {}
        self.output: list[str] = []

    def mask(self, text: str) -> str:
        """Replace secrets; roles hide them too, but a role that forgets must not leak."""
        for secret in self.masked:
            text = text.replace(secret, "***")
        return text

    def on_event(self, event: dict[str, Any]) -> None:
        """Take one event."""
        if event.get("stdout"):
            line = self.mask(event["stdout"].replace("\r", ""))
            self.log.write("".join(f"{self.label}{part}\n" for part in line.split("\n")))
            self.log.flush()
            self.output.append(line)
        data = event.get("event_data") or {}
        kind = event.get("event")
        if kind == "playbook_on_start":
            self.playbook.unlink(missing_ok=True)  # it has been read, and has secrets in it
        elif kind == "playbook_on_play_start":
            self.close()
            self.open()
        elif self.index < 0:
            found = (data.get("res") or {}).get("records")
            if kind == "runner_on_ok" and found is not None:
                self.outcome.records[str(data["host"])] = found
        elif kind == "playbook_on_task_start":
            self.task = data.get("name") or data.get("task") or ""
            for host, step in self.plays[self.index].steps.items():
                if host in self.running:
                    self.listener.task(step, self.mask(self.task))
                    break
        elif kind == "playbook_on_stats":
            self.close()
            self.settle({*(data.get("failures") or {}), *(data.get("dark") or {})})
        elif str(kind).startswith("runner_on_") and data.get("host") in self.plays[self.index].steps:
            self.on_result(str(kind), data)

    def on_result(self, kind: str, data: dict[str, Any]) -> None:
        """Take the result of a task on a machine."""
        host = str(data["host"])
        step = self.plays[self.index].steps[host]
        result = data.get("res") or {}
        if host in self.doubtful and self.doubtful[host][0] != step:
            self.succeed(*self.doubtful.pop(host)[:2])  # it goes on, so what failed has been rescued
            self.begin(step)
        done = self.running.setdefault(host, Done())
        task = self.mask(str(data.get("task") or self.task))
        # A connection that cannot be made at all has changed nothing; one that is lost may leave anything.
        lost = kind == "runner_on_unreachable" and host in self.answered
        if lost or (kind in ("runner_on_ok", "runner_on_failed") and result.get("changed")):
            done.tasks.append(task)
        self.answered.add(host)
        if kind == "runner_on_ok":
            done.attributes |= (result.get("ansible_stats") or {}).get("data") or {}
        elif kind == "runner_on_failed" and not data.get("ignore_errors"):
            why = f'task "{self.mask(self.task)}" failed: {self.mask(reason(result))}'
            self.doubtful[host] = (step, done, f"{step.name} on {host}: {why}")
        elif kind == "runner_on_unreachable":
            why = f"{step.name}: {host} cannot be reached: {self.mask(reason(result))}"
            self.doubtful[host] = (step, done, why)

    def open(self) -> None:
        """Begin the next play."""
        self.index += 1
        if self.index < 0:
            return
        self.began = time.monotonic()
        self.running = {}
        self.answered = set()
        for host, step in self.plays[self.index].steps.items():
            if host not in self.doubtful:
                self.begin(step)

    def begin(self, step: Step) -> None:
        """Begin a step."""
        self.running[step.host] = Done()
        self.listener.started(step)

    def close(self) -> None:
        """End the play that runs, if any."""
        if 0 <= self.index < len(self.plays):
            for host, step in self.plays[self.index].steps.items():
                done = self.running.get(host)
                if done is not None:
                    done.seconds = time.monotonic() - self.began
                    if host not in self.doubtful:
                        self.succeed(step, done)
            self.running = {}

    def succeed(self, step: Step, done: Done) -> None:
        """End a step well."""
        self.outcome.done.add(step.name)
        self.listener.finished(step, done)

    def settle(self, lost: set[str]) -> None:
        """End the steps that are in doubt."""
        for host, (step, done, why) in self.doubtful.items():
            if host in lost:
                self.outcome.failed[step.name] = why
                self.listener.failed(step, why, done)
            else:
                self.succeed(step, done)
        self.doubtful = {}


def run(
    steps: list[Step],
    claim: Claim,
    pool: Path,
    directory: Path,
    log: Path,
    listener: Listener,
    stop: threading.Event,
    *,
    label: str = "",
    check: bool = False,
) -> Outcome:
    """Run steps in one Ansible process.

    Args:
        steps: as `waves.lanes` divided them.
        claim: for whom they make something, as roles note it down.
        pool: the inventory.
        directory: private folder for the run.
        log: file to append Ansible's output to.
        listener: told about every step and task.
        stop: ends the run when it is set.
        label: begins every line in the log; empty if no other process writes to it.
        check: only say what would change.

    Returns:
        How it ended. A step that is neither done nor failed was not run.

    Raises:
        BadInput: the playbook of a step is not exactly one play.
    """
    plays = waves.plays(steps)
    playbook = directory / "playbook.yml"
    write(playbook, compile_playbook(plays, claim, check=check))
    hidden = {form for step in steps for form in step.hidden()}
    with os.fdopen(
        os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
    ) as file:
        masked = tuple(sorted(hidden, key=len, reverse=True))
        watch = _Watch(plays, playbook, listener, masked, file, label)
        status = ansible.play(playbook, [pool], directory, watch.on_event, stop, check=check)
    outcome = watch.outcome
    outcome.status = status
    if status == "canceled":
        return outcome
    watch.settle(set(watch.doubtful))  # without the numbers at its end, Ansible has broken off
    if status != "successful" and not outcome.failed:
        outcome.failure = f"Ansible: {ansible.complaint(chr(10).join(watch.output))}"
    return outcome


def write(path: Path, text: str) -> None:
    """Write a file that has secrets in it.

    Args:
        path: the file.
        text: its content.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
