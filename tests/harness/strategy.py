"""A strategy of Ansible that runs tasks in this process and asks stubs where a module would go to a host."""

from __future__ import annotations

from typing import Any

from ansible.executor.task_result import _RawTaskResult
from ansible.plugins import loader as plugin_loader
from ansible.plugins.strategy.linear import StrategyModule as Linear

from harness.executor import Executor


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
        executor = Executor(
            host,
            own,
            dict(task_vars),
            play_context,
            self._loader,
            plugin_loader.get_plugin_loader_namespace(),
            Unheard(),
            self._variable_manager,
        )
        executor.recording = self._tqm.recording
        result = executor.run()
        self._tqm.recording.finish(host.name, own, result)
        raw = _RawTaskResult(host=host, task=own, return_data=result, task_fields=own.dump_attrs())
        self._results.append(self._convert_wire_task_result_to_raw(raw.as_wire_task_result()))
        self._pending_results += 1


class Unheard:
    """The queue to which an executor tells how loops and attempts go on; only the end counts here."""

    def send_callback(self, method_name: str, task_result: Any) -> None:
        """Take note of nothing."""
