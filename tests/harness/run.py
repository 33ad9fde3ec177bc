"""Runs one role on imagined hosts."""

from __future__ import annotations

import functools
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from ansible import context
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible.inventory.manager import InventoryManager
from ansible.playbook.play import Play
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import lookup_loader, strategy_loader
from ansible.template import trust_as_template
from ansible.utils.context_objects import CLIArgs
from ansible.utils.vars import load_options_vars
from ansible.vars.manager import VariableManager

from harness.compiling import compiled_once
from harness.finding import found_once
from harness.loading import Loader
from harness.recording import Answer, Call, Recording, Step
from harness.strategy import InProcess
from harness.stubs import ALL_IS_WELL

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 24, tzinfo=UTC)


@dataclass(frozen=True)
class Run:
    """Result of a role: its tasks, the calls of its modules, and the hosts on which it failed."""

    steps: list[Step]
    calls: list[Call]
    failed: tuple[str, ...]

    @property
    def refusal(self) -> str:
        """Message of the last failed task; empty if none failed."""
        return ([step.message for step in self.steps if step.status == "failed"] or [""])[-1]


def run_role(
    role: str,
    variables: Mapping[str, Any],
    *,
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    elsewhere: Mapping[str, Mapping[str, Any]] | None = None,
    extra: Mapping[str, str] | None = None,
    answers: Mapping[str, Answer] | None = None,
    check: bool = False,
    entry: str = "main",
) -> Run:
    """Run a role of this collection.

    Args:
        role: its name, without that of the collection.
        variables: what the play gives it, as data.
        hosts: the variables of each host of the play; ``host1`` without any where this is left out.
        elsewhere: the variables of hosts that the inventory has and the play leaves out.
        extra: what ``-e NAME=TEXT`` gives on the command line.
        answers: what modules say, by the name of a task or that of a module, beside what is always so.
        check: whether it only tells what it would do.
        entry: name of the file of tasks.

    Returns:
        All that happened.
    """
    loader = _loader()
    inventory = InventoryManager(loader=loader, sources=None, parse=False)
    hosts = hosts or {"host1": {}}
    for host, known in {**hosts, **(elsewhere or {})}.items():
        inventory.add_host(host)
        for name, value in known.items():
            inventory.get_host(host).set_variable(name, value)
    inventory.reconcile_inventory()
    recording = Recording({**ALL_IS_WELL, **(answers or {})})
    included = {"name": f"gpufarm.cluster.{role}", "tasks_from": entry}
    with _as_ansible_playbook(check):
        manager = VariableManager(loader=loader, inventory=inventory, version_info={})
        manager._extra_vars = {name: trust_as_template(text) for name, text in (extra or {}).items()}
        play = Play.load(
            {
                "name": f"Run {role}",
                "hosts": list(hosts),
                "gather_facts": False,
                "vars": dict(variables),
                "tasks": [{"name": "Run it", "ansible.builtin.include_role": included}],
            },
            variable_manager=manager,
            loader=loader,
        )
        queue = TaskQueueManager(inventory, manager, loader, {}, forks=1)
        queue._callback_plugins = [_quiet()]
        queue.recording = recording
        try:
            queue.run(play)
        finally:
            queue.cleanup()
    return Run(recording.steps, recording.calls, tuple(queue._failed_hosts))


@functools.cache
def _loader() -> Loader:
    loader = Loader()
    loader.set_basedir(str(ROOT))
    return loader


def _quiet() -> CallbackBase:
    callback = CallbackBase()
    callback._init_callback_methods()
    return callback


@contextmanager
def _as_ansible_playbook(check: bool) -> Iterator[None]:
    """Set what the command sets before it runs a play, and put it back."""
    options = CLIArgs({"check": check, "diff": False, "tags": ["all"], "skip_tags": [], "verbosity": 0})
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with (
            mock.patch.object(context, "CLIARGS", options),
            # It keeps the options that it finds first in a process, as it would those of another test.
            mock.patch.object(load_options_vars, "options_vars", None, create=True),
            mock.patch.object(strategy_loader, "get", lambda _name, queue: InProcess(queue)),
            mock.patch("ansible.module_utils._internal.is_controller", True),
            # Time stands still, so that runs can be compared.
            mock.patch("ansible._internal._templating._jinja_bits._now", lambda **_how: NOW),
            # It copies all variables in depth and then only adds some: a third of the time of some roles.
            mock.patch.dict(type(lookup_loader.get("template")).run.__globals__, {"deepcopy": dict}),
            compiled_once(),
            found_once(),
        ):
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
