# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU slices of this machine, as NVML reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pynvml


class GpuQueryError(Exception):
    """NVML did not answer; nothing is known about the slices."""


@dataclass(frozen=True)
class Slice:
    """What one notebook can have for itself: a MIG device, or a whole GPU when MIG is off.

    Attributes:
        uuid: NVML's UUID of the MIG device, or of the GPU.
        profile: MIG profile such as ``1g.10gb``, or the GPU's model name.
        gpu: minor number of the GPU's device node.
        gpu_instance: id of the GPU instance; None for a whole GPU.
        compute_instance: id of the compute instance; None for a whole GPU.
        memory: bytes.
    """

    uuid: str
    profile: str
    gpu: int
    gpu_instance: int | None
    compute_instance: int | None
    memory: int

    @property
    def whole(self) -> bool:
        """Whether it is a whole GPU."""
        return self.gpu_instance is None

    def overlaps(self, other: Slice) -> bool:
        """Tell whether one kernel could run on both slices at once."""
        if self.gpu != other.gpu:
            return False
        if self.gpu_instance is None or other.gpu_instance is None:
            return True
        return (self.gpu_instance, self.compute_instance) == (other.gpu_instance, other.compute_instance)


def count_by_profile(slices: Iterable[Slice]) -> Counter[str]:
    """Count slices per profile, in the order in which the profiles appear."""
    return Counter(piece.profile for piece in slices)


def list_slices(nvml: Any = pynvml) -> list[Slice]:
    """Ask NVML for all slices, ordered by GPU and then by position.

    NVML is initialised and shut down on each call: an open handle would keep the driver from being replaced.

    Args:
        nvml: the binding ``pynvml``.

    Raises:
        GpuQueryError: NVML or the driver is missing, or refuses to answer.
    """
    try:
        nvml.nvmlInit()
        try:
            return [
                piece
                for index in range(nvml.nvmlDeviceGetCount())
                for piece in _slices_of(nvml, nvml.nvmlDeviceGetHandleByIndex(index))
            ]
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise GpuQueryError(f"the NVIDIA driver does not answer: {error}") from error


def _slices_of(nvml: Any, device: Any) -> Iterator[Slice]:
    gpu = nvml.nvmlDeviceGetMinorNumber(device)
    if not _mig_enabled(nvml, device):
        yield Slice(
            uuid=nvml.nvmlDeviceGetUUID(device),
            profile=nvml.nvmlDeviceGetName(device),
            gpu=gpu,
            gpu_instance=None,
            compute_instance=None,
            memory=nvml.nvmlDeviceGetMemoryInfo(device).total,
        )
        return
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
        except nvml.NVMLError_NotFound:
            continue
        # The name of a MIG device ends with its profile: "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
        # (NVIDIA MIG User Guide, device names of `nvidia-smi -L`).
        yield Slice(
            uuid=nvml.nvmlDeviceGetUUID(mig),
            profile=nvml.nvmlDeviceGetName(mig).rpartition("MIG ")[2],
            gpu=gpu,
            gpu_instance=nvml.nvmlDeviceGetGpuInstanceId(mig),
            compute_instance=nvml.nvmlDeviceGetComputeInstanceId(mig),
            memory=nvml.nvmlDeviceGetMemoryInfo(mig).total,
        )


def _mig_enabled(nvml: Any, device: Any) -> bool:
    try:
        current, _pending = nvml.nvmlDeviceGetMigMode(device)
    except nvml.NVMLError_NotSupported:
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)
