# SPDX-License-Identifier: GPL-3.0-or-later
"""Use of slices, as NVML reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pynvml

from .slices import GpuQueryError

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class GpuUse:
    """The use of one slice.

    Attributes:
        processes: ids of those that have it open.
        utilisation: per cent of the last second in which it computed; None where NVML does not tell.
    """

    processes: frozenset[int]
    utilisation: int | None


def measure(uuids: Iterable[str], nvml: Any = pynvml) -> dict[str, GpuUse]:
    """Ask NVML for the use of slices.

    Args:
        uuids: of MIG devices or GPUs; those that are gone, or whose GPU is lost, are left out.
        nvml: the binding ``pynvml``.

    Raises:
        GpuQueryError: NVML or the driver is missing, or none of them answers.
    """
    return _ask(_use_of, uuids, nvml)


def processes(uuids: Iterable[str], nvml: Any = pynvml) -> dict[str, frozenset[int]]:
    """Ask NVML for the ids of the processes that have slices open; arguments and errors as `measure`."""
    return _ask(_processes_of, uuids, nvml)


def _ask(question: Callable[[Any, Any], Answer], uuids: Iterable[str], nvml: Any) -> dict[str, Answer]:
    found, failure = {}, None
    try:
        nvml.nvmlInit()
        try:
            for uuid in uuids:
                try:
                    found[uuid] = question(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
                except nvml.NVMLError_NotFound:
                    continue
                except nvml.NVMLError as error:  # of one GPU, as when it is lost
                    failure = error
        finally:
            nvml.nvmlShutdown()
        if failure and not found:
            raise failure
    except nvml.NVMLError as error:
        raise GpuQueryError(f"the NVIDIA driver does not answer: {error}") from error
    return found


def _use_of(nvml: Any, device: Any) -> GpuUse:
    processes = _processes_of(nvml, device)
    try:
        return GpuUse(processes, nvml.nvmlDeviceGetUtilizationRates(device).gpu)
    except nvml.NVMLError_NotSupported:
        return GpuUse(processes, None)


def _processes_of(nvml: Any, device: Any) -> frozenset[int]:
    return frozenset(process.pid for process in _running(nvml, device))


def _running(nvml: Any, device: Any) -> Any:
    try:
        return nvml.nvmlDeviceGetComputeRunningProcesses_v3(device)
    except nvml.NVMLError_FunctionNotFound:  # before R510; the fields are the same
        return nvml.nvmlDeviceGetComputeRunningProcesses_v2(device)
