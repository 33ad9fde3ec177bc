"""Record of a run of a role: its tasks in their order, and how its modules were called."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Modules that only ask, or that roles only ask with; those of this collection end with _info.
ASKING = {
    "ansible.builtin.command",
    "ansible.builtin.find",
    "ansible.builtin.getent",
    "ansible.builtin.setup",
    "ansible.builtin.slurp",
    "ansible.builtin.stat",
    "ansible.builtin.uri",
    "gpufarm.cluster.mount_validate",
}


@dataclass(frozen=True)
class Call:
    """One call of a module, with its arguments as the host would get them.

    Attributes:
        interpreter: the Python that the module runs with, where the role says so.
    """

    host: str
    name: str
    action: str
    args: dict[str, Any]
    environment: list[dict[str, Any]]
    no_log: bool
    check_mode: bool
    interpreter: str = ""

    @property
    def asks(self) -> bool:
        """Whether it leaves the host as it is."""
        return (
            self.check_mode
            or self.action in ASKING
            or self.args.get("step") in ("compare", "claim")  # in check mode nothing is claimed
            or self.action.endswith("_info")
            or self.args.get("create") is False
        )


@dataclass(frozen=True)
class Step:
    """One task on one host; ``status`` is ok, skipped or failed, ``result`` what a callback could print."""

    host: str
    name: str
    action: str
    status: str
    no_log: bool
    result: Mapping[str, Any] = field(repr=False)

    @property
    def message(self) -> str:
        """Message of the task."""
        return str(self.result.get("msg", ""))


Answer = Mapping[str, Any] | Callable[[Call], Mapping[str, Any]]


@dataclass
class Recording:
    """All that happened in a run, and what modules answer in it."""

    answers: Mapping[str, Answer]
    calls: list[Call] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def answer(self, call: Call) -> dict[str, Any]:
        """Return what is known for the name of the task, else for the module, else that all is well."""
        known = self.answers.get(call.name.rpartition(" : ")[2], self.answers.get(call.action, {}))
        said = copy.deepcopy(dict(known(call) if callable(known) else known))
        if call.action == "ansible.builtin.uri" and not call.args.get("return_content"):
            said.pop("content", None)  # as the module leaves it out
        return {"changed": False, **said}

    def finish(self, host: str, task: Any, result: Mapping[str, Any]) -> None:
        """Record a task that was run, or skipped."""
        status = "skipped" if result.get("skipped") else "failed" if result.get("failed") else "ok"
        action = task.resolved_action or task.action
        self.steps.append(Step(host, task.get_name(), action, status, bool(task.no_log), result))
