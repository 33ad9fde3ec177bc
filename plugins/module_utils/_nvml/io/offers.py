# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and the partitions that they offer, read without the binding of NVML: before anything is installed.

Structures and functions are those of nvml.h 12.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from ..gpu import Gpu, GpuError, Placement, Profile, Survey, Unreadable, identified
from . import kernel_gpus
from .guarded import Calls
from .session import ENGINES, LIBRARY, PROFILE_INDEXES, is_missing, load_problem

# NVML_SUCCESS, NVML_DEVICE_NAME_V2_BUFFER_SIZE
SUCCESS = 0
TEXT = 96
# Structures that tell their version: their size and the version in the highest byte (NVML_STRUCT_VERSION).
VERSION_2 = 2 << 24


class BrokenLibrary(GpuError):
    """The library of the driver is there and cannot be loaded."""


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _Pci(ctypes.Structure):
    """nvmlPciInfo_t."""

    _fields_ = [
        ("bus_id_legacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "device_id", "subsystem_id")),
        ("bus_id", ctypes.c_char * 32),
    ]


class _ProfileInfo(ctypes.Structure):
    """nvmlGpuInstanceProfileInfo_v2_t."""

    _fields_ = [
        *((name, ctypes.c_uint) for name in ("version", "id", "p2p", "slices", "count", "cores", "copies")),
        *((name, ctypes.c_uint) for name in ENGINES),
        ("memory", ctypes.c_ulonglong),
        ("name", ctypes.c_char * TEXT),
    ]


class _Placement(ctypes.Structure):
    """nvmlGpuInstancePlacement_t."""

    _fields_ = [("start", ctypes.c_uint), ("size", ctypes.c_uint)]


def empty_gpus(calls: Calls) -> Survey:
    """Return all GPUs as if they were in MIG mode and held no partitions; none if no driver answers.

    Raises:
        BrokenLibrary: when the library is there and cannot be loaded.
    """
    try:
        nvml = ctypes.CDLL(LIBRARY)
    except OSError as error:
        if is_missing(str(error), LIBRARY):
            return Survey(())
        raise BrokenLibrary(load_problem(str(error))) from error
    if nvml.nvmlInit_v2() != SUCCESS:
        return Survey(())
    try:
        calls.report("nvmlDeviceGetCount")
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != SUCCESS:
            return Survey(())
        found = [_read(nvml, index, calls) for index in range(count.value)]
        gpus = tuple(one for one in found if isinstance(one, Gpu))
        failed = tuple(one for one in found if isinstance(one, Unreadable))
        return Survey(gpus, identified(failed, gpus, kernel_gpus.listed()) if failed else ())
    except AttributeError:  # a driver that is too old for some function
        return Survey(())
    finally:
        nvml.nvmlShutdown()


def _read(nvml: Any, index: int, calls: Calls) -> Gpu | Unreadable:
    if index in calls.hung:
        return calls.hung[index]
    calls.report("a call of NVML", index)
    return _gpu(nvml, index)


def _gpu(nvml: Any, index: int) -> Gpu | Unreadable:
    device = ctypes.c_void_p()
    memory, pci = _Memory(), _Pci()
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    code = nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    if code != SUCCESS:
        nvml.nvmlErrorString.restype = ctypes.c_char_p
        words = nvml.nvmlErrorString(code).decode(errors="replace")
        return Unreadable(index, "", "", f"NVML was asked for GPU {index} and answered: {words}.")
    nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    nvml.nvmlDeviceGetPciInfo_v3(device, ctypes.byref(pci))
    capable = nvml.nvmlDeviceGetMigMode(device, ctypes.byref(current), ctypes.byref(pending)) == SUCCESS
    return Gpu(
        index=index,
        minor=index,
        uuid=_text(nvml.nvmlDeviceGetUUID, device),
        name=_text(nvml.nvmlDeviceGetName, device),
        serial=_text(nvml.nvmlDeviceGetSerial, device),
        pci_address=f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0",
        memory_mib=memory.total // 2**20,
        mig_capable=capable,
        mig_enabled=True,
        mig_pending=True,
        profiles=tuple(_profiles(nvml, device)) if capable else (),
        instances=(),
        processes=(),
    )


def _text(call: Any, device: ctypes.c_void_p) -> str:
    text = ctypes.create_string_buffer(TEXT)
    return text.value.decode(errors="replace") if call(device, text, TEXT) == SUCCESS else ""


def _profiles(nvml: Any, device: ctypes.c_void_p) -> Iterator[Profile]:
    for index in PROFILE_INDEXES:
        info = _ProfileInfo(version=ctypes.sizeof(_ProfileInfo) | VERSION_2)
        if nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, index, ctypes.byref(info)) != SUCCESS:
            continue
        count = ctypes.c_uint(0)
        places = nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2
        places(device, info.id, None, ctypes.byref(count))
        found = (_Placement * count.value)()
        if places(device, info.id, found, ctypes.byref(count)) != SUCCESS:
            continue
        yield Profile(
            id=info.id,
            name=info.name.decode(errors="replace").replace("MIG ", ""),
            slices=info.slices,
            memory_mib=info.memory,
            max_count=info.count,
            placements=tuple(sorted(Placement(one.start, one.size) for one in found[: count.value])),
            engines=tuple((kind, getattr(info, kind)) for kind in ENGINES),
        )
