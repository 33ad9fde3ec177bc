# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of simulated GPUs, as a caller of NVML meets them; what is refused where is as nvml.h says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host, in_child

SETTERS: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (n.nvmlDeviceSetPersistenceMode, (1,)),
    (n.nvmlDeviceSetPowerManagementLimit, (300_000,)),
    (n.nvmlDeviceSetGpuLockedClocks, (1200, 1410)),
    (n.nvmlDeviceResetGpuLockedClocks, ()),
    (n.nvmlDeviceSetMemoryLockedClocks, (1593, 1593)),
    (n.nvmlDeviceResetMemoryLockedClocks, ()),
    (n.nvmlDeviceSetComputeMode, (n.NVML_COMPUTEMODE_PROHIBITED,)),
    (n.nvmlDeviceSetEccMode, (0,)),
    (n.nvmlDeviceSetAccountingMode, (1,)),
]


def settings(device: Any) -> list[int]:
    """Return what NVML tells of settings that the driver forgets; the clock shows whether it is locked."""
    return [
        n.nvmlDeviceGetPowerManagementLimit(device),
        n.nvmlDeviceGetClockInfo(device, n.NVML_CLOCK_SM),
        n.nvmlDeviceGetComputeMode(device),
        n.nvmlDeviceGetAccountingMode(device),
    ]


def set_all(device: Any) -> None:
    for call, arguments in SETTERS:
        if "Reset" not in call.__name__:
            call(device, *arguments)


def test_settings_are_for_root(make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    make_host("a100-80gb")
    monkeypatch.setenv("NVMLSIM_UID", "1000")
    for call, arguments in SETTERS:
        with pytest.raises(n.NVMLError_NoPermission):
            call(sim_nvml.gpu(), *arguments)


def test_settings_are_those_of_all_processes(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb")
    set_all(sim_nvml.gpu())
    assert in_child(lambda: settings(sim_nvml.gpu())) == [300_000, 1200, n.NVML_COMPUTEMODE_PROHIBITED, 1]
    n.nvmlDeviceResetGpuLockedClocks(sim_nvml.gpu())
    assert in_child(lambda: settings(sim_nvml.gpu()))[1] == 210


@pytest.mark.parametrize("event", [("boot",), ("reset", "0"), ("driver-unload",)])
def test_the_driver_forgets_settings(make_host: Callable[..., Host], event: tuple[str, ...]) -> None:
    host = make_host("a100-80gb")
    before = settings(sim_nvml.gpu())
    set_all(sim_nvml.gpu())
    host.control(*event)
    host.control("driver-load")
    assert settings(sim_nvml.gpu()) == before
    assert n.nvmlDeviceGetPersistenceMode(sim_nvml.gpu()) == int(event[0] == "reset")
    assert n.nvmlDeviceGetEccMode(sim_nvml.gpu())[1] == 0, "the board keeps it"


def test_clocks_that_are_offered_can_be_locked(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb")
    device = sim_nvml.gpu()
    [memory] = n.nvmlDeviceGetSupportedMemoryClocks(device)
    graphics = n.nvmlDeviceGetSupportedGraphicsClocks(device, memory)
    assert graphics[0] == 1410 and graphics[-1] == 210 and len(graphics) == 81
    n.nvmlDeviceSetGpuLockedClocks(device, graphics[-1], graphics[0])
    n.nvmlDeviceSetMemoryLockedClocks(device, memory, memory)
    with pytest.raises(n.NVMLError_NotFound):
        n.nvmlDeviceGetSupportedGraphicsClocks(device, memory + 1)
    for wrong in ((1410, 1200), (100, 1410), (210, 1425)):
        with pytest.raises(n.NVMLError_InvalidArgument):
            n.nvmlDeviceSetGpuLockedClocks(device, *wrong)
    with pytest.raises(n.NVMLError_InvalidArgument):
        n.nvmlDeviceSetMemoryLockedClocks(device, memory, memory + 1)


def test_memory_clocks_are_locked_from_ampere_on(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    [memory] = n.nvmlDeviceGetSupportedMemoryClocks(sim_nvml.gpu())
    n.nvmlDeviceSetGpuLockedClocks(sim_nvml.gpu(), 300, 1590)
    with pytest.raises(n.NVMLError_NotSupported):
        n.nvmlDeviceSetMemoryLockedClocks(sim_nvml.gpu(), memory, memory)
    with pytest.raises(n.NVMLError_NotSupported):
        n.nvmlDeviceResetMemoryLockedClocks(sim_nvml.gpu())


def test_modes_that_are_no_modes(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    for call in (n.nvmlDeviceSetComputeMode, n.nvmlDeviceSetAccountingMode, n.nvmlDeviceSetEccMode):
        with pytest.raises(n.NVMLError_InvalidArgument):
            call(sim_nvml.gpu(), 4)
    with pytest.raises(n.NVMLError_NotSupported):
        n.nvmlDeviceSetComputeMode(sim_nvml.gpu(), n.NVML_COMPUTEMODE_EXCLUSIVE_THREAD)


@pytest.mark.parametrize("model", ["a100-80gb", "h100-80gb"])
def test_mig_mode_fixes_compute_and_accounting_mode(make_host: Callable[..., Host], model: str) -> None:
    make_host(model)
    device = sim_nvml.gpu()
    n.nvmlDeviceSetComputeMode(device, n.NVML_COMPUTEMODE_PROHIBITED)
    n.nvmlDeviceSetAccountingMode(device, 1)
    assert n.nvmlDeviceSetMigMode(device, 1) == n.NVML_SUCCESS
    assert settings(device)[2:] == [0, 0]
    for call in (n.nvmlDeviceSetComputeMode, n.nvmlDeviceSetAccountingMode):
        with pytest.raises(n.NVMLError_NotSupported):
            call(device, 0)
