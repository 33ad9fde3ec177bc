"""Ansible's own executor of tasks, except that a module's work on the host is a stub's answer."""

from __future__ import annotations

from typing import Any

from ansible._internal._templating._engine import TemplateEngine
from ansible.executor.task_executor import TaskExecutor
from ansible.template import trust_as_template

from harness.recording import Call, Recording

# Actions that check and compute on the controller and touch no host: they run as they are.
REAL = {
    f"ansible.builtin.{name}"
    for name in (
        "add_host",
        "assert",
        "debug",
        "fail",
        "group_by",
        "include_vars",
        "set_fact",
        "set_stats",
        "validate_argument_spec",
    )
}


class Executor(TaskExecutor):  # type: ignore[misc]  # Ansible has no types
    """Settles conditions, loops and arguments of a task, and asks a stub for what its module would say."""

    recording: Recording

    def _get_connection(self, cvars: Any, templar: Any, current_connection: str) -> Any:
        """Return a connection that is never used and quickly made; the variables keep the declared one."""
        return super()._get_connection(cvars, templar, "ansible.builtin.local")

    def _get_action_handler_with_module_context(self, templar: Any) -> tuple[Any, Any]:
        """Return what acts: Ansible's own action, or the stub of a module."""
        action = self._task.resolved_action or self._task.action
        if action in REAL:
            return super()._get_action_handler_with_module_context(templar)
        return Stub(self, action, templar), None


class Stub:
    """Stands where the action plugin of a module would."""

    def __init__(self, executor: Executor, action: str, templar: Any) -> None:
        self.executor = executor
        self.action = action
        self.templar = templar

    def run(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """Record how the module was called and return the answer of the case."""
        task = self.executor._task
        args = dict(task.args)
        if self.action == "ansible.builtin.template":
            args["content"] = _rendered(self.templar, args["src"], task_vars)
        call = Call(
            host=task.delegate_to or self.executor._host.name,
            name=task.get_name(),
            action=self.action,
            args=args,
            environment=list(task.environment or []),
            no_log=bool(task.no_log),
            check_mode=bool(task.check_mode),
            interpreter=str(self.templar.template(task_vars.get("ansible_python_interpreter", ""))),
        )
        self.executor.recording.calls.append(call)
        return self.executor.recording.answer(call)

    def cleanup(self, force: bool = False) -> None:
        """Leave nothing, as nothing was made."""


def _rendered(templar: TemplateEngine, source: str, task_vars: dict[str, Any]) -> str:
    """Return the text of a template, found and evaluated as the action ``template`` does."""
    scope = TemplateEngine(loader=templar._loader, variables={**task_vars, "__harness_source": source})
    return str(
        scope.template(trust_as_template("{{ lookup('ansible.builtin.template', __harness_source) }}"))
    )
