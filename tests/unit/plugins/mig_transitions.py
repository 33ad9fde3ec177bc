"""Random changes of a simulated GPU that are interrupted at every call: what must hold afterwards."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    Flavor,
    parse_flavor,
    parse_layout,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import Plan, plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu, GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from simulated_machine import Machine

from lab.mig_oracle import Layout, Oracle

MUTATING = (
    "nvmlDeviceSetMigMode",
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceDestroy",
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
    "nvmlComputeInstanceDestroy",
)


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing between the call and the test may handle it."""


class Interruption:
    """Counts the calls that change something, and lets one of them fail or be the last.

    A run that is killed before a call is one that is killed after the call before it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._nth, self._kill, self.calls = 0, False, 0
        for name in MUTATING:
            monkeypatch.setattr(pynvml, name, self._wrap(getattr(pynvml, name)))

    @contextmanager
    def at(self, nth: int, kill: bool) -> Iterator[None]:
        """Let the nth call from now on fail, or be the last one; the 0th is none."""
        self._nth, self._kill, self.calls = nth, kill, 0
        try:
            yield
        finally:
            self._nth = 0

    def _wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls != self._nth:
                return call(*arguments)
            if not self._kill:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
            call(*arguments)
            raise Killed

        return wrapped


def state(gpu: Gpu) -> Any:
    """Partitions of a GPU as a user sees them."""
    instances = [
        (str(one), sorted((compute.start, compute.slices) for compute in one.compute_instances))
        for one in gpu.instances
    ]
    return gpu.mig_enabled, gpu.mig_pending, sorted(instances)


def used(gpu: Gpu) -> set[tuple[str, int]]:
    """The compute instances that programs use, by place, and so what has to survive."""
    return {
        (str(instance), compute.start)
        for instance in gpu.instances
        for compute in instance.compute_instances
        if compute.id in gpu.used_compute_instances(instance)
    }


class Transitions:
    """Changes of one GPU, each from a random situation to a random request."""

    def __init__(self, machine: Machine, seed: str, interruption: Interruption) -> None:
        self._machine, self._interruption = machine, interruption
        self._chance = random.Random(seed)
        self._fresh = machine.state
        with session.session() as nvml:
            oracle = Oracle.of_profiles(nvml.gpus()[0].profiles)
        self._layouts = sorted(oracle.layouts, key=sorted)

    def check(self) -> int:
        """Try the next change with every interruption; returns the number of runs, 0 if it is refused."""
        with session.session() as nvml:
            self._prepare(nvml)
            before, start = nvml.gpus()[0], self._machine.state
            request = self._request(before)
            try:
                goal = plan_flavor(before, request)
            except GpuError:
                return 0
            with self._interruption.at(0, kill=False):
                self._run(nvml, request)
            calls = self._interruption.calls
            self._reached(nvml, goal, before)
            for nth in range(1, calls + 1):
                self._machine.state = start
                self._fails(nvml, request, nth, before)
                self._machine.state = start
                self._is_killed(nvml, request, nth, before, goal)
        return 1 + 2 * calls

    def _fails(self, nvml: session.Nvml, request: Flavor, nth: int, before: Gpu) -> None:
        with self._interruption.at(nth, kill=False), pytest.raises(GpuError) as caught:
            self._run(nvml, request)
        assert str(caught.value).endswith(
            ("were put back: run again when the cause is gone.", "Nothing was changed.")
        )
        assert state(nvml.gpus()[0]) == state(before)

    def _is_killed(self, nvml: session.Nvml, request: Flavor, nth: int, before: Gpu, goal: Plan) -> None:
        with self._interruption.at(nth, kill=True), pytest.raises(Killed):
            self._run(nvml, request)
        assert used(before) <= used(nvml.gpus()[0])
        self._run(nvml, request)
        self._reached(nvml, goal, before)

    def _reached(self, nvml: session.Nvml, goal: Plan, before: Gpu) -> None:
        gpu = nvml.gpus()[0]
        assert gpu.mig_enabled == goal.mig_enabled
        assert used(before) <= used(gpu)
        found = sorted((one.profile.name, one.widths) for one in gpu.instances)
        assert found == sorted((slot.profile.name, slot.compute) for slot in goal.layout)

    def _run(self, nvml: session.Nvml, request: Flavor) -> None:
        plan = plan_flavor(nvml.gpus()[0], request)
        if plan.changed:
            apply.apply(nvml, [plan])

    def _prepare(self, nvml: session.Nvml) -> None:
        """Give the GPU random partitions, of which programs use some; sometimes MIG mode is off."""
        self._machine.state = self._fresh
        if self._chance.random() < 0.1:
            return
        layout = self._chance.choice(self._layouts)
        apply.apply(nvml, [plan_flavor(nvml.gpus()[0], self._divided(nvml.gpus()[0], layout, places=True))])
        for instance in nvml.gpus()[0].instances:
            for compute in instance.compute_instances:
                if self._chance.random() < 0.15:
                    self._machine.control("process-start", compute.uuid, str(4000 + instance.id), "1")

    def _request(self, gpu: Gpu) -> Flavor:
        if self._chance.random() < 0.1:
            return parse_flavor("disabled")
        return self._divided(gpu, self._chance.choice(self._layouts), places=self._chance.random() < 0.2)

    def _divided(self, gpu: Gpu, layout: Layout, places: bool) -> Flavor:
        """A layout in which some GPU instances are divided, and some have no compute instance."""
        by_id = {profile.id: profile for profile in gpu.profiles}
        entries = []
        for number, start in sorted(layout):
            profile = by_id[number]
            entry: dict[str, Any] = {"profile": profile.name}
            if places:
                entry["start"] = start
            if profile.slices > 1 and self._chance.random() < 0.3:
                entry["compute_instances"] = ["1c"] * self._chance.randint(0, profile.slices)
            entries.append(entry)
        return parse_layout(entries)
