# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVML says about the use of slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pynvml

from .slices import GpuQueryError


@dataclass(frozen=True)
class GpuUse:
    """The use of one slice.

    Attributes:
        processes: how many have it open.
        utilisation: per cent of the last second in which it computed; None where NVML does not tell.
    """

    processes: int
    utilisation: int | None


def measure(uuids: list[str], nvml: Any = pynvml) -> dict[str, GpuUse]:
    """Ask NVML for the use of slices.

    Args:
        uuids: of MIG devices or GPUs; those that are gone are left out.
        nvml: the binding ``pynvml``.

    Raises:
        GpuQueryError: NVML or the driver is missing, or refuses to answer.
    """
    try:
        nvml.nvmlInit()
        try:
            found = {uuid: _use_of(nvml, uuid) for uuid in uuids}
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise GpuQueryError(f"the NVIDIA driver does not answer: {error}") from error
    return {uuid: use for uuid, use in found.items() if use is not None}


def _use_of(nvml: Any, uuid: str) -> GpuUse | None:
    try:
        device = nvml.nvmlDeviceGetHandleByUUID(uuid)
    except nvml.NVMLError_NotFound:
        return None
    processes = len(nvml.nvmlDeviceGetComputeRunningProcesses(device))
    try:
        return GpuUse(processes, nvml.nvmlDeviceGetUtilizationRates(device).gpu)
    except nvml.NVMLError_NotSupported:
        return GpuUse(processes, None)
