# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the steps of a plan in one Ansible process and reduces what happens to what a person needs to know."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from gpufarm import ansible
from gpufarm.errors import BadInput
from gpufarm.plan import Step
from gpufarm.pool import reason


class Listener(Protocol):
    """Whoever wants to know how the run goes."""

    def started(self, step: Step) -> None:
        """A step begins."""

    def task(self, step: Step, name: str) -> None:
        """A task of the step begins."""

    def finished(self, step: Step, changed: int, attributes: dict[str, Any], seconds: float) -> None:
        """A step is done."""


class _Verbatim(str):
    """Text that Ansible must not take for a template."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Verbatim, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"')
)


def _verbatim(value: Any) -> Any:
    if isinstance(value, str):
        # only where it matters: Ansible reads `!unsafe "535"` as a number and `!unsafe ""` as nothing at all
        return _Verbatim(value) if "{" in value else value
    if isinstance(value, list):
        return [_verbatim(item) for item in value]
    if isinstance(value, dict):
        return {key: _verbatim(item) for key, item in value.items()}
    return value


def compile_playbook(steps: Iterable[Step]) -> str:
    """Write the playbook that imports the playbooks of all steps, each with its variables.

    Args:
        steps: in order.

    Returns:
        The playbook. It contains secrets in clear.

    Raises:
        BadInput: the playbook of a step is not exactly one play.
    """
    plays = []
    for step in steps:
        # what happens is told apart by counting the plays, so each step has to be one
        content = yaml.load(step.playbook.read_text(), Loader=_Lenient)  # noqa: S506  (a SafeLoader)
        if not isinstance(content, list) or len(content) != 1:
            raise BadInput(f"{step.playbook}: the implementation of an operation has to be exactly one play")
        variables = {key: _verbatim(value) for key, value in step.variables.items()}
        plays.append(
            {"import_playbook": str(step.playbook), "vars": {"gpufarm_hosts": [step.host], **variables}}
        )
    return yaml.dump(plays, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Lenient(yaml.SafeLoader):
    """Reads a playbook without knowing Ansible's own tags."""


_Lenient.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


@dataclass
class Outcome:
    """How a run ended.

    Attributes:
        status: ``successful``, ``failed`` or ``canceled``.
        failure: one sentence about what went wrong; empty if nothing did.
    """

    status: str
    failure: str = ""


@dataclass
class _Watch:
    """Follows the events of a run."""

    steps: list[Step]
    listener: Listener
    masked: tuple[str, ...]
    log: Any
    index: int = -1
    began: float = 0.0
    changed: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    task: str = ""
    failure: str = ""
    output: list[str] = field(default_factory=list)

    def mask(self, text: str) -> str:
        """Replace secrets; roles hide them too, but a role that forgets must not leak."""
        for secret in self.masked:
            text = text.replace(secret, "***")
        return text

    def on_event(self, event: dict[str, Any]) -> None:
        """Take one event."""
        if event.get("stdout"):
            line = self.mask(event["stdout"].replace("\r", ""))
            self.log.write(line + "\n")
            self.log.flush()
            self.output.append(line)
        data = event.get("event_data") or {}
        kind = event.get("event")
        if kind == "playbook_on_play_start":
            self.close()
            self.index += 1
            self.began = time.monotonic()
            self.changed, self.attributes = 0, {}
            self.listener.started(self.steps[self.index])
        elif self.index < 0:
            return
        elif kind == "playbook_on_task_start":
            self.task = data.get("name") or data.get("task") or ""
            self.listener.task(self.steps[self.index], self.mask(self.task))
        elif kind == "runner_on_ok":
            result = data.get("res") or {}
            self.changed += bool(result.get("changed"))
            self.attributes |= (result.get("ansible_stats") or {}).get("data") or {}
        elif kind == "runner_on_failed" and not data.get("ignore_errors"):
            self.fail(data, "")
        elif kind == "runner_on_unreachable":
            self.fail(data, "cannot be reached: ")

    def fail(self, data: dict[str, Any], prefix: str) -> None:
        """Remember the failure of a task; a later one replaces it, since the earlier one was rescued."""
        why = self.mask(reason(data.get("res") or {}))
        step = self.steps[self.index]
        if prefix:
            self.failure = f"{step.name}: {data.get('host')} {prefix}{why}"
        else:
            self.failure = f'{step.name} on {data.get("host")}: task "{self.mask(self.task)}" failed: {why}'

    def close(self) -> None:
        """End the step that runs, if any."""
        if 0 <= self.index < len(self.steps):
            step = self.steps[self.index]
            self.listener.finished(step, self.changed, self.attributes, time.monotonic() - self.began)


def run(
    steps: list[Step],
    pool: Path,
    directory: Path,
    log: Path,
    listener: Listener,
    *,
    check: bool = False,
) -> Outcome:
    """Run steps.

    Args:
        steps: in order.
        pool: the inventory.
        directory: private folder for the run.
        log: file to write Ansible's output to.
        listener: told about every step and task.
        check: only say what would change.

    Returns:
        How it ended.

    Raises:
        BadInput: the playbook of a step is not exactly one play.
    """
    playbook = directory / "playbook.yml"
    _write(playbook, compile_playbook(steps))
    values = {str(step.variables[name]) for step in steps for name in step.secrets}
    # as they are, and as they look inside JSON; a short one would mask half of the log and protects nothing
    forms = {form for value in values if len(value) >= 4 for form in (value, json.dumps(value)[1:-1])}
    with os.fdopen(
        os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
    ) as file:
        watch = _Watch(steps, listener, tuple(sorted(forms, key=len, reverse=True)), file)
        status = ansible.play(playbook, pool, directory, watch.on_event, check=check)
    if status == "successful":
        watch.close()
        return Outcome(status)
    if status == "canceled":
        return Outcome(status)
    failure = watch.failure or f"Ansible: {ansible.complaint(chr(10).join(watch.output))}"
    return Outcome("failed", failure)


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
