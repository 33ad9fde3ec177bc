"""A strategy of Ansible that runs tasks in this process and asks stubs where a module would go to a host."""

from __future__ import annotations

from typing import Any

from ansible.plugins import loader as plugin_loader
from ansible.plugins.strategy.linear import StrategyModule as Linear

from harness.executor import Executor

try:
    from ansible._internal._task import TaskContext, WireTaskResult
except ImportError:  # before ansible-core 2.21
    from ansible.executor.task_result import _RawTaskResult

    TaskContext = None


class InProcess(Linear):  # type: ignore[misc]  # Ansible has no types
    """The strategy ``linear`` without worker processes."""

    def _queue_task(self, host: Any, task: Any, task_vars: dict[str, Any], play_context: Any) -> None:
        """Run a task on a host and keep its result for the strategy, as a worker process would send it."""
        self._queued_task_cache[host.name, task._uuid] = {
            "host": host,
            "task": task,
            "task_vars": task_vars,
            "play_context": play_context,
        }
        # A worker process has a copy of its own too, so what it settles is not settled for the next host.
        own = task.copy(exclude_parent=True, exclude_tasks=True)
        own._parent = task._parent
        own.squash()
        # Nothing here takes time, so nobody waits for it.
        own.delay = 0
        own.async_val = 0
        own.timeout = 0
        result = self._executed(host, own, dict(task_vars), play_context)
        self._tqm.recording.finish(host.name, own, result)
        self._pending_results += 1

    def _executed(self, host: Any, task: Any, task_vars: dict[str, Any], play_context: Any) -> dict[str, Any]:
        """Run a task, keep its result as Ansible passes it on, and return it as a callback could print it."""
        others = (
            play_context,
            self._loader,
            plugin_loader.get_plugin_loader_namespace(),
            Unheard(),
            self._variable_manager,
        )
        if TaskContext is None:
            result = self._recorded(Executor(host, task, task_vars, *others))
            raw = _RawTaskResult(host=host, task=task, return_data=result, task_fields=task.dump_attrs())
            self._results.append(self._convert_wire_task_result_to_raw(raw.as_wire_task_result()))
            return result
        with TaskContext.create(task=task, task_vars=task_vars, host_name=host.name):
            unified = self._recorded(Executor(host, *others))
            unified.finalize_registered_values()
        wire = WireTaskResult.create(host=host, task=task, utr=unified)
        self._results.append(self._convert_wire_task_result_to_host_task_result(wire))
        return unified.as_result_dict()

    def _recorded(self, executor: Executor) -> Any:
        executor.recording = self._tqm.recording
        return executor.run()


class Unheard:
    """The queue to which an executor tells how loops and attempts go on; only the end counts here."""

    def send_callback(self, method_name: str, *told: Any) -> None:
        """Take note of nothing."""
