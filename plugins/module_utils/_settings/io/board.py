# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a GPU, read and set through NVML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

try:
    import pynvml
except ImportError:
    pynvml = None

from ..._nvml.gpu import REPAIR, Gpu, GpuError, Unreadable
from ..._nvml.io.guarded import Calls
from ..._nvml.io.handle import by_uuid
from ..._nvml.io.readings import Failed, NotTold, Reader
from ..plan import Board
from ..request import COMPUTE_MODES, DEFAULT, Values, words

# nvml.h: nvmlDeviceSetGpuLockedClocks is for Volta and later, nvmlDeviceSetMemoryLockedClocks for Ampere and
# later; the numbers are those of nvmlDeviceArchitecture_t.
OLDEST_ARCHITECTURES: Mapping[str, int] = {"gpu_clocks": 5, "memory_clocks": 7}
# nvmlComputeMode_t
COMPUTE_MODE_NUMBERS = dict(zip(COMPUTE_MODES, (0, 3, 2)))
SETTERS: Mapping[str, str] = {
    "persistence_mode": "nvmlDeviceSetPersistenceMode",
    "power_limit": "nvmlDeviceSetPowerManagementLimit",
    "gpu_clocks": "nvmlDeviceSetGpuLockedClocks",
    "memory_clocks": "nvmlDeviceSetMemoryLockedClocks",
    "compute_mode": "nvmlDeviceSetComputeMode",
    "ecc_mode": "nvmlDeviceSetEccMode",
    "accounting_mode": "nvmlDeviceSetAccountingMode",
}
RESETTERS: Mapping[str, str] = {
    "gpu_clocks": "nvmlDeviceResetGpuLockedClocks",
    "memory_clocks": "nvmlDeviceResetMemoryLockedClocks",
}


class _Reading:
    """The settings of one GPU; what it lacks is left out."""

    def __init__(self, gpu: Gpu, calls: Calls) -> None:
        self._reader = Reader(lambda call: calls.report(call, gpu.index))
        self._handle = self._reader.open(gpu.uuid, calls.hung)
        self.values: Values = {}

    def ask(self, call: str, *arguments: Any) -> Any:
        """Return what NVML tells, or None where the GPU does not have it.

        Raises:
            Failed: for any other error.
        """
        try:
            return self._reader.ask(call, self._handle, *arguments)
        except NotTold:
            return None

    def add(self, name: str, call: str, convert: Callable[[Any], Any]) -> None:
        """Read a setting, if the GPU has it."""
        told = self.ask(call)
        if told is not None:
            self.values[name] = convert(told)

    def clocks(self) -> dict[str, tuple[int, int]]:
        """Return the lowest and the highest of the clocks that can be locked, in MHz."""
        memory = self.ask("nvmlDeviceGetSupportedMemoryClocks")
        graphics = self.ask("nvmlDeviceGetSupportedGraphicsClocks", max(memory)) if memory else None
        architecture = self.ask("nvmlDeviceGetArchitecture") or 0
        return {
            name: (min(clocks), max(clocks))
            for name, clocks in (("gpu_clocks", graphics), ("memory_clocks", memory))
            if clocks and architecture >= OLDEST_ARCHITECTURES[name]
        }


class Failure(GpuError):
    """A GPU does not tell its settings."""

    def __init__(self, gpu: Gpu, reason: str) -> None:
        self.unreadable = Unreadable(gpu.index, gpu.uuid, gpu.pci_address, reason)
        super().__init__(f"{self.unreadable}{REPAIR}")


def read(gpu: Gpu, calls: Calls) -> Board:
    """Return the settings of a GPU.

    Raises:
        Failure: when it does not tell them.
    """
    try:
        return _read(gpu, calls)
    except (Failed, pynvml.NVMLError) as error:
        raise Failure(gpu, f"NVML was asked for its settings and answered: {error}.") from error


def _read(gpu: Gpu, calls: Calls) -> Board:
    reading = _Reading(gpu, calls)
    modes = {number: mode for mode, number in COMPUTE_MODE_NUMBERS.items()}
    range_and_default = (0, 0, 0)
    limits = reading.ask("nvmlDeviceGetPowerManagementLimitConstraints")
    default = reading.ask("nvmlDeviceGetPowerManagementDefaultLimit")
    if limits and default:
        reading.add("power_limit", "nvmlDeviceGetPowerManagementLimit", int)
        range_and_default = (limits[0], limits[1], default)
    reading.add("persistence_mode", "nvmlDeviceGetPersistenceMode", bool)
    reading.add("compute_mode", "nvmlDeviceGetComputeMode", lambda told: modes.get(told, DEFAULT))
    reading.add("accounting_mode", "nvmlDeviceGetAccountingMode", bool)
    ecc = reading.ask("nvmlDeviceGetEccMode")
    if ecc:
        reading.values["ecc_mode"] = bool(ecc[1])
    clocks = reading.clocks()
    reading.values |= dict.fromkeys(clocks, DEFAULT)
    return Board(
        uuid=gpu.uuid,
        name=str(gpu),
        values=reading.values,
        mig_enabled=gpu.mig_enabled,
        ecc_in_force=bool(ecc[0]) if ecc else None,
        power=range_and_default,
        clocks=clocks,
    )


def change(gpu: Gpu, name: str, value: Any, calls: Calls) -> None:
    """Set one setting of a GPU.

    Raises:
        GpuError: when the driver refuses.
    """
    arguments: tuple[int, ...]
    call = SETTERS[name]
    if name in RESETTERS:
        arguments = () if value == DEFAULT else tuple(value)
        call = call if arguments else RESETTERS[name]
    elif name == "compute_mode":
        arguments = (COMPUTE_MODE_NUMBERS[value],)
    else:
        arguments = (int(value),)
    calls.report(call, gpu.index)
    try:
        getattr(pynvml, call)(by_uuid(gpu.uuid, calls.hung), *arguments)
    except pynvml.NVMLError as error:
        step = (
            "run this as root (become: true)"
            if error.value == pynvml.NVML_ERROR_NO_PERMISSION
            else "look into the kernel's log for the cause, and run again"
        )
        raise GpuError(
            f"{gpu} refused the {name} {words(name, value)}, and NVML answered: {error}; {step}."
        ) from error
