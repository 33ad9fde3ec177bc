# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells what a machine has, as one line of JSON, before anything is installed on it.

Sent to the machine's Python as it is, in one round trip: a module of Ansible would cost many times as much.
It needs nothing but Python: GPUs are asked for through the driver's own library, and counted in /proc and on
the PCI bus where there is none.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, Optional

# nvml.h: NVML_SUCCESS, NVML_DEVICE_NAME_V2_BUFFER_SIZE
SUCCESS = 0
NAME_SIZE = 96
# PCI SIG: vendor of NVIDIA, classes VGA controller and 3D controller
NVIDIA = "0x10de"
DISPLAY = ("0x0300", "0x0302")


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def from_nvml() -> Optional[list[dict[str, Any]]]:  # noqa: UP045  (machines may have Python 3.9)
    """GPUs as NVML tells them; None if there is no driver that answers."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != SUCCESS:
        return None
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != SUCCESS:
            return None
        gpus = []
        for index in range(count.value):
            device = ctypes.c_void_p()
            name = ctypes.create_string_buffer(NAME_SIZE)
            memory = Memory()
            current, pending = ctypes.c_uint(), ctypes.c_uint()
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) != SUCCESS:
                continue
            nvml.nvmlDeviceGetName(device, name, NAME_SIZE)
            nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
            mig = nvml.nvmlDeviceGetMigMode(device, ctypes.byref(current), ctypes.byref(pending)) == SUCCESS
            gpus.append(
                {
                    "model": name.value.decode(errors="replace"),
                    "memory": memory.total or None,
                    "mig_capable": mig,
                }
            )
        return gpus
    finally:
        nvml.nvmlShutdown()


def without_nvml() -> list[dict[str, Any]]:
    """GPUs as the kernel tells them: their number, the rest unknown."""
    found = list(Path("/proc/driver/nvidia/gpus").glob("*"))
    if not found:
        found = [
            device
            for device in Path("/sys/bus/pci/devices").glob("*")
            if (device / "vendor").read_text().strip() == NVIDIA
            and (device / "class").read_text().startswith(DISPLAY)
        ]
    return [{"model": None, "memory": None, "mig_capable": None} for _gpu in found]


def memory() -> int:
    """Total memory in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def distribution() -> tuple[str, str]:
    """ID and VERSION_ID of os-release."""
    lines = Path("/etc/os-release").read_text().splitlines()
    values = dict(line.strip().split("=", 1) for line in lines if "=" in line)
    return values.get("ID", "").strip("\"'"), values.get("VERSION_ID", "").strip("\"'")


def main() -> None:
    """Print what was found."""
    root = os.statvfs("/")
    gpus = from_nvml()
    name, version = distribution()
    found = {
        "cpus": len(os.sched_getaffinity(0)),
        "memory": memory(),
        "disk": root.f_blocks * root.f_frsize,
        "distribution": name,
        "version": version,
        "architecture": os.uname().machine,
        "gpus": without_nvml() if gpus is None else gpus,
    }
    print(json.dumps(found))


main()
