# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that NVML tells about the state of one GPU, reading by reading."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable
from typing import Any

try:
    import pynvml
except ImportError:
    pynvml = None

from ..gpu import is_bus_id, pci_address
from .handle import by_uuid

# nvml.h, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; older bindings lack the name.
RECOVERY_ACTION = 230
# nvml.h, NVML_FI_DEV_MEMORY_TEMP
MEMORY_TEMPERATURE = 82
# nvml.h, NVML_NVLINK_MAX_LINKS of the newest release
MAX_NVLINKS = 36
NVLINK_ERROR_COUNTERS = 4
FABRIC_NOT_SUPPORTED = 0
# Errors that mean that a GPU, a driver or a mode (MIG) does not have what was asked for.
NOT_TOLD = (
    "NOT_SUPPORTED",
    "FUNCTION_NOT_FOUND",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "NO_DATA",
    "ARGUMENT_VERSION_MISMATCH",
    "DEPRECATED",
)


class NotTold(Exception):
    """The GPU does not have what was asked for."""


class Failed(Exception):
    """NVML failed; the text is the name of its error, such as `GPU_IS_LOST`."""


class Reader:
    """Asks NVML. `report` gets the name of each call before it is made, as it may never return."""

    def __init__(self, report: Callable[[str], None] = lambda call: None) -> None:
        self._report = report

    def ask(self, call: str, *arguments: Any) -> Any:
        """Call a function of NVML.

        Raises:
            NotTold: when the GPU, the driver or the binding does not have it.
            Failed: for any other error.
        """
        function = getattr(pynvml, call, None)
        if function is None:
            raise NotTold(call)
        self._report(call)
        try:
            return function(*arguments)
        except pynvml.NVMLError as error:
            name = error_name(error.value)
            raise (NotTold if name in NOT_TOLD else Failed)(name) from error

    def gpu(self, handle: Any, names: Iterable[str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what a GPU tells, by name, and the names of the errors of what could not be read.

        Readings that the GPU does not support are in neither.

        Args:
            names: of `READINGS`, those that are asked for; all of them if not given.
        """
        values: dict[str, Any] = {}
        failures: dict[str, str] = {}
        for name in READINGS if names is None else names:
            try:
                value = READINGS[name](self, handle)
            except NotTold:
                continue
            except Failed as error:
                failures[name] = str(error)
                continue
            if value is not None:
                values[name] = value
        return values, failures

    def open(self, uuid: str, hung: Collection[int] = ()) -> Any:
        """Return the handle of a GPU; GPUs whose indexes are in `hung` are not opened.

        Raises:
            Failed: when it cannot be opened.
        """
        self._report("nvmlDeviceGetHandleByUUID")
        try:
            return by_uuid(uuid, hung)
        except pynvml.NVMLError as error:
            raise Failed(error_name(error.value)) from error


def error_name(code: int) -> str:
    """Return the name of an NVML return code without its beginning, such as `GPU_IS_LOST` for 15."""
    prefix = "NVML_ERROR_"
    names = (name for name in dir(pynvml) if name.startswith(prefix) and getattr(pynvml, name) == code)
    return next(names, f"{prefix}{code}").replace(prefix, "", 1)


def _call(name: str, *arguments: Any) -> Callable[[Reader, Any], Any]:
    return lambda reader, handle: reader.ask(name, handle, *arguments)


def _pair(first: str, second: str) -> Callable[[Reader, Any], list[Any]]:
    return lambda reader, handle: [reader.ask(first, handle), reader.ask(second, handle)]


def _ecc(kind: int, counter: int) -> Callable[[Reader, Any], Any]:
    return _call("nvmlDeviceGetTotalEccErrors", kind, counter)


def _valid_inforom(reader: Reader, handle: Any) -> bool:
    reader.ask("nvmlDeviceValidateInforom", handle)
    return True


def _sram(reader: Reader, handle: Any) -> dict[str, Any]:
    kind = getattr(pynvml, "c_nvmlEccSramErrorStatus_v1_t", None)
    if kind is None:
        raise NotTold("nvmlDeviceGetSramEccErrorStatus")
    status = kind()
    reader.ask("nvmlDeviceGetSramEccErrorStatus", handle, ctypes.byref(status))
    return {
        "uncorrected": status.volatileUncParity + status.volatileUncSecDed,
        "threshold_exceeded": bool(status.bThresholdExceeded),
    }


def _remapped_rows(reader: Reader, handle: Any) -> dict[str, Any]:
    corrected, uncorrected, pending, failure = reader.ask("nvmlDeviceGetRemappedRows", handle)
    return {
        "corrected": corrected,
        "uncorrected": uncorrected,
        "pending": bool(pending),
        "failure": bool(failure),
    }


def _retired_pages(reader: Reader, handle: Any) -> dict[str, Any]:
    # nvml.h, nvmlPageRetirementCause_t: 0 several single-bit errors, 1 a double-bit error
    single, double = (len(reader.ask("nvmlDeviceGetRetiredPages", handle, cause)) for cause in (0, 1))
    pending = reader.ask("nvmlDeviceGetRetiredPagesPendingStatus", handle)
    return {"single": single, "double": double, "pending": bool(pending)}


def _nvlinks(reader: Reader, handle: Any) -> dict[str, bool] | None:
    """Return whether each NVLink is active, by its number as text; None when there is none."""
    links = {}
    for link in range(MAX_NVLINKS):
        try:
            links[str(link)] = bool(reader.ask("nvmlDeviceGetNvLinkState", handle, link))
        except NotTold:
            break
    return links or None


def _nvlink_peers(reader: Reader, handle: Any) -> list[str] | None:
    """Return the PCI addresses of what the active NVLinks lead to, GPUs or switches; None without any."""
    links = _nvlinks(reader, handle) or {}
    active = [int(link) for link, is_active in links.items() if is_active]
    ends = [reader.ask("nvmlDeviceGetNvLinkRemotePciInfo", handle, link).busId for link in active]
    # The driver does not know the address of each.
    return sorted({pci_address(end) for end in ends if is_bus_id(end)}) or None


def _nvlink_errors(reader: Reader, handle: Any) -> int | None:
    total = None
    for link in _nvlinks(reader, handle) or ():
        for counter in range(NVLINK_ERROR_COUNTERS):
            try:
                count = reader.ask("nvmlDeviceGetNvLinkErrorCounter", handle, int(link), counter)
            except NotTold:
                continue
            total = (total or 0) + count
    return total


def _fabric(reader: Reader, handle: Any) -> dict[str, int] | None:
    kind = getattr(pynvml, "c_nvmlGpuFabricInfo_v2_t", None)
    if kind is None:
        raise NotTold("nvmlDeviceGetGpuFabricInfoV")
    info = kind()
    reader.ask("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info))
    if info.state == FABRIC_NOT_SUPPORTED:
        return None
    return {"state": info.state, "status": info.status}


def _clock_reasons(reader: Reader, handle: Any) -> Any:
    try:
        return reader.ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
    except NotTold:
        # its name before driver 535
        return reader.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)


def _field(number: int) -> Callable[[Reader, Any], int]:
    def read(reader: Reader, handle: Any) -> int:
        field = reader.ask("nvmlDeviceGetFieldValues", handle, [number])[0]
        if field.nvmlReturn:
            name = error_name(field.nvmlReturn)
            raise (NotTold if name in NOT_TOLD else Failed)(name)
        return int(field.value.uiVal)

    return read


def _mig(reader: Reader, handle: Any) -> dict[str, Any]:
    current, pending = reader.ask("nvmlDeviceGetMigMode", handle)
    return {"current": bool(current), "pending": bool(pending)}


def _memory(reader: Reader, handle: Any) -> dict[str, int]:
    # Version 2 tells apart what the driver reserves for itself; nvml.h, nvmlMemory_v2_t.
    memory = reader.ask("nvmlDeviceGetMemoryInfo", handle, pynvml.nvmlMemory_v2)
    return {"total_mib": memory.total // 2**20, "used_mib": memory.used // 2**20}


def _processes(reader: Reader, handle: Any) -> list[int]:
    # A privileged caller sees those of the GPU's partitions too; nvml.h,
    # nvmlDeviceGetComputeRunningProcesses_v3.
    try:
        found = reader.ask("nvmlDeviceGetComputeRunningProcesses_v3", handle)
    except NotTold:  # before R510
        found = reader.ask("nvmlDeviceGetComputeRunningProcesses_v2", handle)
    return sorted({one.pid for one in found})


def _utilization(reader: Reader, handle: Any) -> int:
    return int(reader.ask("nvmlDeviceGetUtilizationRates", handle).gpu)


# nvml.h: nvmlMemoryErrorType_t (0 corrected, 1 uncorrected), nvmlEccCounterType_t (0 since the driver was
# loaded), nvmlTemperatureThresholds_t (0 shutdown, 1 slowdown, 2 memory), nvmlClockType_t (1 streaming
# multiprocessors, 2 memory).
READINGS: dict[str, Callable[[Reader, Any], Any]] = {
    "recovery_action": _field(RECOVERY_ACTION),
    "vbios": _call("nvmlDeviceGetVbiosVersion"),
    "inforom": _valid_inforom,
    "persistence": lambda reader, handle: bool(reader.ask("nvmlDeviceGetPersistenceMode", handle)),
    "compute_mode": _call("nvmlDeviceGetComputeMode"),
    "ecc_mode": lambda reader, handle: [bool(one) for one in reader.ask("nvmlDeviceGetEccMode", handle)],
    "ecc_corrected": _ecc(0, 0),
    "ecc_uncorrected": _ecc(1, 0),
    "sram": _sram,
    "remapped_rows": _remapped_rows,
    "retired_pages": _retired_pages,
    "nvlinks": _nvlinks,
    "nvlink_peers": _nvlink_peers,
    "nvlink_errors": _nvlink_errors,
    "fabric": _fabric,
    "pcie_width": _pair("nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth"),
    "pcie_generation": _pair("nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie_replays": _call("nvmlDeviceGetPcieReplayCounter"),
    "clock_reasons": _clock_reasons,
    "clocks_mhz": lambda reader, handle: {
        "sm": reader.ask("nvmlDeviceGetClockInfo", handle, 1),
        "memory": reader.ask("nvmlDeviceGetClockInfo", handle, 2),
    },
    "max_sm_clock_mhz": _call("nvmlDeviceGetMaxClockInfo", 1),
    "temperature": _call("nvmlDeviceGetTemperature", 0),
    "slowdown_temperature": _call("nvmlDeviceGetTemperatureThreshold", 1),
    "memory_temperature": _field(MEMORY_TEMPERATURE),
    "max_memory_temperature": _call("nvmlDeviceGetTemperatureThreshold", 2),
    "power_mw": _call("nvmlDeviceGetPowerUsage"),
    "power_limit_mw": _call("nvmlDeviceGetEnforcedPowerLimit"),
    "default_power_limit_mw": _call("nvmlDeviceGetPowerManagementDefaultLimit"),
    "utilization": _utilization,
    "memory": _memory,
    "mig": _mig,
    "processes": _processes,
}
