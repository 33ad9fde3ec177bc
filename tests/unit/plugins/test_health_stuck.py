"""A process that waits for the driver and cannot be killed: later runs send no other after it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline, dump, load
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import read as health_read
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import (
    Machine,
    evaluate,
    next_baseline,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import guard
from simulated_machine import Machine as Simulated

CALL = "nvmlDeviceGetPersistenceMode"


@pytest.fixture(autouse=True)
def unkillable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Let no child be killed, as the kernel does while a call hangs; returns what ends one nevertheless."""
    started: list[int] = []
    fork = os.fork

    def collect(child: int, *_grace: float) -> int | None:
        return os.waitstatus_to_exitcode(os.waitpid(child, os.WNOHANG)[1])

    def note() -> int:
        started.append(fork())
        return started[-1]

    def end(child: int) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    monkeypatch.setattr(os, "fork", note)
    monkeypatch.setattr(guard, "_reap", lambda child, grace: None if alive(child) else collect(child, grace))
    yield end
    for child in started:
        end(child)


def alive(child: int) -> bool:
    """Whether a child has not ended within some seconds; one that has done its work ends at once."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        time.sleep(0.01)
    return True


def hang(*_arguments: Any) -> None:
    time.sleep(3600)


def run(before: Baseline) -> tuple[Machine, Baseline]:
    """Return what a recorded run reads, and what it leaves to the next one in its file."""
    machine = health_read.read_machine(Settings(call_timeout=3), before)
    return machine, load(dump(next_baseline(machine, before)))


def responds(machine: Machine, before: Baseline) -> dict[str, str]:
    """Return the status of each GPU by its UUID."""
    findings = evaluate(machine, Settings(), before)
    return {one.gpu: one.status for one in findings if one.check == "gpu_responds"}


def test_only_the_gpus_that_hang_are_not_read_by_later_runs(
    make_machine: Callable[..., Simulated],
    unkillable: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_machine("a100-80gb", "a100-80gb", "a100-80gb")
    gpus = health_read.read_machine(Settings(), Baseline()).gpus
    uuids = [one.uuid for one in gpus]
    expected = dict(zip(uuids, ("critical", "ok", "critical"), strict=True))
    real, uuid_of = getattr(pynvml, CALL), pynvml.nvmlDeviceGetUUID
    with monkeypatch.context() as broken:
        broken.setattr(
            pynvml, CALL, lambda handle: real(handle) if uuid_of(handle) == uuids[1] else hang(handle)
        )
        first, left = run(Baseline())
        assert responds(first, left) == expected and len(left.hung) == 2
        for _run in range(2):
            machine, after = run(left)
            assert responds(machine, left) == expected
            assert [one.hung_in for one in machine.gpus] == [f"{CALL} within 3 s", "", f"{CALL} within 3 s"]
            assert [one.name for one in machine.gpus] == [one.name for one in gpus]
            assert machine.gpus[1].values and after.hung == left.hung
    # The driver lets go of one of the processes: its GPU is asked again, and the other one is not.
    unkillable(int(left.hung[0].process.split()[0]))
    machine, after = run(left)
    assert responds(machine, left) == dict(zip(uuids, ("ok", "ok", "critical"), strict=True))
    assert after.hung == left.hung[1:]


def test_a_driver_that_hangs_is_not_asked_again_and_gpus_that_hang_are_remembered(
    make_machine: Callable[..., Simulated],
    unkillable: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_machine("a100-80gb", "a100-80gb")
    with monkeypatch.context() as broken:
        broken.setattr(pynvml, CALL, hang)
        _machine, gpus_left = run(Baseline())
        broken.setattr(pynvml, "nvmlInit", hang)
        machine, left = run(gpus_left)
        assert machine.hung_in == "nvmlInit within 3 s" and len(machine.gpus) == 2
        again, after = run(left)
        assert again.hung_in == machine.hung_in and after.hung == left.hung
        assert [one.gpu.get("index") for one in left.hung] == [None, 0, 1]
    for one in left.hung:
        unkillable(int(one.process.split()[0]))
    machine, after = run(left)
    assert machine.hung_in == "" and set(responds(machine, left).values()) == {"ok"} and after.hung == []
