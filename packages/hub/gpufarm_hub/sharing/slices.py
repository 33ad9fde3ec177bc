# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU slices of this machine, as NVML reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pynvml

from . import bounded, cordons, health
from .health import Verdicts


class GpuQueryError(Exception):
    """NVML did not answer; nothing is known about the slices."""


@dataclass(frozen=True)
class Slice:
    """Unit that one notebook can hold: a MIG device, or a whole GPU when MIG is off.

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


@dataclass(frozen=True)
class Gpus:
    """Readings of the GPUs of this machine.

    Attributes:
        slices: those of the GPUs that answered, ordered by GPU and then by position.
        answered: minor numbers of these GPUs.
        unfit: minor numbers of those whose slices must be given to nobody.
        problems: what is wrong, one sentence for each GPU that did not answer or is unfit.
        cordoned: why slices must be given to nobody, by their UUIDs, where they or their GPUs are cordoned.
    """

    slices: list[Slice]
    answered: frozenset[int]
    unfit: frozenset[int] = frozenset()
    problems: tuple[str, ...] = ()
    cordoned: Mapping[str, str] = field(default_factory=dict)

    @property
    def offered(self) -> list[Slice]:
        """The slices that may be given to somebody."""
        return [piece for piece in self.slices if not self._withholds(piece)]

    @property
    def withheld(self) -> list[Slice]:
        """The slices that are cordoned, and those of GPUs that are unfit."""
        return [piece for piece in self.slices if self._withholds(piece)]

    @property
    def cordons(self) -> list[Slice]:
        """The slices that are cordoned."""
        return [piece for piece in self.slices if piece.uuid in self.cordoned]

    @property
    def reasons(self) -> list[str]:
        """Why slices are given to nobody: the problems, and the cordons of GPUs and slices."""
        return [*self.problems, *dict.fromkeys(self.cordoned.values())]

    def _withholds(self, piece: Slice) -> bool:
        return piece.gpu in self.unfit or piece.uuid in self.cordoned

    @property
    def all_answered(self) -> bool:
        """Whether every GPU answered."""
        return len(self.problems) == len(self.unfit)

    def is_gone(self, piece: Slice) -> bool:
        """Tell whether a slice is not there any more; of a GPU that does not answer nothing is known."""
        return piece not in self.slices and (self.all_answered or piece.gpu in self.answered)


# Seconds in which a GPU must answer; it takes milliseconds.
PATIENCE = 5.0


def read_gpus(
    nvml: Any = pynvml,
    verdicts: Callable[[], Verdicts] = health.read,
    read_cordons: Callable[[], Mapping[str, str]] = cordons.read,
) -> Gpus:
    """Ask NVML for all GPUs and their slices; one that is lost, or hangs, does not hide the others.

    NVML is initialised and shut down on each call: an open handle would keep the driver from being replaced.

    Args:
        nvml: the binding ``pynvml``.
        verdicts: tells which GPUs are not fit for work.
        read_cordons: tells which GPUs and slices are cordoned.

    Raises:
        GpuQueryError: NVML or the driver is missing, no GPU answers, or the cordons cannot be read.
    """
    critical = verdicts().critical
    try:
        reasons = read_cordons()
    except OSError as error:
        raise GpuQueryError(f"it is unknown which GPUs are cordoned: {error}") from error
    cordoned = dict[str, str]()
    slices: list[Slice] = []
    answered, unfit, problems = set[int](), set[int](), list[str]()
    try:
        with _open(nvml):
            for index in range(nvml.nvmlDeviceGetCount()):
                try:
                    ask = partial(_read_gpu, nvml, index)
                    minor, uuid, is_fit, pieces = bounded.ask(("GPU", index), ask, PATIENCE)
                except TimeoutError:
                    problems.append(f"GPU {index} does not answer within {PATIENCE:g} seconds")
                    continue
                except nvml.NVMLError as error:
                    problems.append(f"GPU {index} does not answer: {error}")
                    continue
                slices += pieces
                answered.add(minor)
                if uuid in reasons:
                    cordoned |= {piece.uuid: f"GPU {index} is {reasons[uuid]}" for piece in pieces}
                else:
                    cordoned |= {
                        piece.uuid: f"{piece.uuid} is {reasons[piece.uuid]}"
                        for piece in pieces
                        if piece.uuid in reasons
                    }
                if not is_fit:
                    unfit.add(minor)
                    problems.append(f"GPU {index} could not remap a bad row of its memory; replace it")
                elif uuid in critical:
                    unfit.add(minor)
                    problems.append(f"GPU {index} is not fit for work: {critical[uuid]}")
    except nvml.NVMLError as error:
        raise GpuQueryError(f"the NVIDIA driver does not answer: {error}") from error
    if problems and not answered:
        raise GpuQueryError(f"the NVIDIA driver does not answer: {'; '.join(problems)}")
    return Gpus(slices, frozenset(answered), frozenset(unfit), tuple(problems), cordoned)


@contextmanager
def _open(nvml: Any) -> Iterator[None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _read_gpu(nvml: Any, index: int) -> tuple[int, str, bool, list[Slice]]:
    """Return a GPU's minor number, its UUID, whether its memory is fit for work, and its slices."""
    with _open(nvml):  # of its own, as it may outlive the caller
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        gpu = nvml.nvmlDeviceGetMinorNumber(device)
        pieces = list(_slices_of(nvml, device, gpu))
        return gpu, nvml.nvmlDeviceGetUUID(device), _is_fit(nvml, device), pieces


def _is_fit(nvml: Any, device: Any) -> bool:
    """Tell whether all bad rows of memory could be remapped (NVIDIA, "GPU Memory Error Management")."""
    try:
        *_counts, failed = nvml.nvmlDeviceGetRemappedRows(device)
    except nvml.NVMLError_NotSupported:
        return True
    return not failed


def _slices_of(nvml: Any, device: Any, gpu: int) -> Iterator[Slice]:
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
