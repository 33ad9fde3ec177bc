"""Drivers that lack functions of newer ones: their GPUs are read as far as these drivers tell about them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import child
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from simulated_machine import Machine

Make = Callable[..., Machine]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns what takes functions, by the ends of their names, from the driver's library."""
    found = pynvml._nvmlGetFunctionPointer

    def take(*ends: str) -> None:
        def missing(name: str) -> object:
            if name.endswith(ends):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            return found(name)

        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", missing)

    return take


def test_programs_are_listed_without_version_3(make_machine: Make, without: Callable[..., None]) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("process", "start", "--gpu", 0, "--memory", 100, "--pid", 4242)
    without("RunningProcesses_v3")
    with session.session() as nvml:
        [gpu] = nvml.gpus()
    assert [one.pid for one in gpu.processes] == [4242]
    answer = child.read_gpus(30)
    assert [one.values["processes"] for one in answer.gpus] == [[4242]] and not answer.hung_in


def test_a_driver_that_lists_no_programs_is_too_old_and_hangs_nowhere(
    make_machine: Make, without: Callable[..., None]
) -> None:
    make_machine("a100-80gb")
    without("RunningProcesses_v3", "RunningProcesses_v2")
    with session.session() as nvml, pytest.raises(GpuError) as caught:
        nvml.gpus()
    assert "nvmlDeviceGetComputeRunningProcesses: Function Not Found; the driver is too old" in str(
        caught.value
    )
    answer = child.read_gpus(30)
    [reading] = answer.gpus
    assert "processes" not in reading.values | reading.failures
    assert reading.values["temperature"] and not reading.hung_in and not answer.error
