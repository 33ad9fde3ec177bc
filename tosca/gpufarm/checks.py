# SPDX-License-Identifier: GPL-3.0-or-later
"""Has the roles of steps check settings and machines before the first step is run; changes nothing."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from gpufarm import ansible, collection, recorded, run, waves
from gpufarm.errors import BadInput, GpufarmError, Interrupted
from gpufarm.plan import Step
from gpufarm.recorded import VARIABLE, Claim, Lenient

_COLLECTION = "gpufarm.cluster."
_INCLUDE = "ansible.builtin.include_role"
# Roles set these up for others, which check them only when they are there; playbooks/vars/validate_later.yml.
_LATER = {
    "zookeeper": "zookeeper",
    "mesos_master": "masters",
    "marathon": "marathon",
    "lustre_client": "folders",
    "cvmfs_client": "folders",
    "shared_home": "folders",
    # Each, as a run that goes on after a failure has only some of them left.
    "slurm_accounts": "slurm",
    "slurm_controller": "slurm",
    "slurm_login": "slurm",
    "slurm_node": "slurm",
    "sssd": "users",
    "user_accounts": "users",
}
# Roles that need file systems, and the roles that may mount these on the same machine in the same run.
_MOUNTED = {
    "scratch": ("lustre_client",),
    "shared_home": ("lustre_client",),
    "staging": ("lustre_client", "shared_home"),
}
_TABLE = "Report all problems of all hosts"


def role(step: Step) -> str:
    """Find the role of a step that can check its settings before anything is set up.

    Args:
        step: the step.

    Returns:
        Its name without that of the collection; empty if there is none.
    """
    return _role(step.playbook)


@functools.cache
def _role(playbook: Path) -> str:
    """The only role of a playbook; none if the playbook gives a role more than the variables of the step."""
    plays = yaml.load(playbook.read_text(), Loader=Lenient)  # noqa: S506  (a SafeLoader)
    (play,) = plays if isinstance(plays, list) and len(plays) == 1 else ({},)
    first, *rest = play.get("tasks") or [{}]
    name = str((first.get(_INCLUDE) or {}).get("name") or "").removeprefix(_COLLECTION)
    conditional = VARIABLE not in str(first.get("when", VARIABLE))
    own = set(play.get("vars") or ()) - {recorded.OWNER} or "vars" in first or conditional
    simple = not own and not any(_INCLUDE in task or "block" in task for task in rest)
    return name if simple and name and _validates(name) else ""


@functools.cache
def _validates(name: str) -> bool:
    """Whether a role has the entry point `validate`."""
    path = collection.root() / "roles" / name / "meta" / "argument_specs.yml"
    return path.is_file() and "\n  validate:\n" in path.read_text()


def _given(step: Step, own: str, planned: Collection[tuple[str, str]]) -> dict[str, Any]:
    """Variables with which the playbook `validate_step` checks a step; as in playbooks/validate.yml."""
    roles = {name for name, _host in planned}
    more = ""
    if own == "lustre_client" and "lustre_server" not in roles:
        more = "validate_servers"
    elif own in _MOUNTED and not {(role, step.host) for role in _MOUNTED[own]} & {*planned}:
        more = "validate_machine"
    later = sorted({_LATER[name] for name in roles if name in _LATER})
    return {**step.variables, "validate_role": own, "validate_more": more, "validate_later": later}


def compile_checks(steps: Iterable[Step], claim: Claim) -> str:
    """Write the playbook that checks steps.

    Args:
        steps: each after those that it needs.
        claim: for whom they make something.

    Returns:
        The playbook, with secrets in clear; empty if no role can check anything.
    """
    by_role: dict[str, list[Step]] = {}
    for step in steps:
        if role(step):
            by_role.setdefault(role(step), []).append(step)
    if not by_role:
        return ""
    planned = {(name, step.host) for name, own in by_role.items() for step in own}
    root = collection.root() / "playbooks"
    plays = [
        play
        for name, own in by_role.items()
        for play in waves.plays(
            replace(
                step, playbook=root / "validate_step.yml", variables=_given(step, name, planned), needs=()
            )
            for step in own
        )
    ]
    hosts = sorted({host for _name, host in planned})
    end = {"import_playbook": str(root / "validate_refuse.yml"), "vars": {"gpufarm_hosts": hosts}}
    return run.dump([*run.imports(plays, claim), end])


class _Watch:
    """Follows the checks: takes the table of problems, and what cannot be checked yet."""

    def __init__(self, playbook: Path, masked: Iterable[str]) -> None:
        self.playbook = playbook
        self.masked = sorted(masked, key=len, reverse=True)
        self.table = ""
        self.notes: list[str] = []
        self.output: list[str] = []

    def mask(self, text: str) -> str:
        for secret in self.masked:
            text = text.replace(secret, "***")
        return text

    def on_event(self, event: dict[str, Any]) -> None:
        data = event.get("event_data") or {}
        result = data.get("res") or {}
        self.output.append(event.get("stdout") or "")
        if event.get("event") == "playbook_on_start":
            self.playbook.unlink(missing_ok=True)  # it has been read, and has secrets in it
        elif event.get("event") == "runner_on_failed" and data.get("task") == _TABLE:
            self.table = self.mask(str(result.get("msg")))
        elif event.get("event") == "runner_on_ok" and result.get("unchecked"):
            self.notes.append(f"{data.get('host')}: {self.mask(str(result['unchecked']))}")


def check(steps: Iterable[Step], claim: Claim, pool: Path) -> list[str]:
    """Have the roles of steps check settings and machines.

    Args:
        steps: each after those that it needs.
        claim: for whom they make something.
        pool: the inventory.

    Returns:
        A sentence for each thing that can only be checked later.

    Raises:
        BadInput: something cannot work; the message is a table of all problems.
        GpufarmError: Ansible fails as a whole.
        Interrupted: a signal stopped it.
    """
    listed = list(steps)
    text = compile_checks(listed, claim)
    if not text:
        return []
    with tempfile.TemporaryDirectory(prefix="gpufarm-") as directory, ansible.signals() as stop:
        playbook = Path(directory) / "playbook.yml"
        run.write(playbook, text)
        watch = _Watch(playbook, {form for step in listed for form in step.hidden()})
        status = ansible.play(playbook, [pool], Path(directory), watch.on_event, stop)
    if status == "canceled":
        raise Interrupted("interrupted while settings and machines were checked; nothing was changed")
    if watch.table:
        raise BadInput(watch.table)
    if status != "successful":
        why = watch.mask(ansible.complaint("\n".join(watch.output)))
        raise GpufarmError(f"settings and machines cannot be checked: {why}; nothing was changed")
    return watch.notes
