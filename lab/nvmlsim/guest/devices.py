# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes of the NVIDIA driver. No driver is behind them: opening one ends with ENXIO, or before that
with EPERM where a device controller forbids it, which is all that the simulated NVML looks at."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

PROC_DEVICES = Path("/proc/devices")
GPU_MAJOR = 195  # fixed, as in the kernel's Documentation/admin-guide/devices.txt
CONTROL_MINOR = 255
MODESET_MINOR = 254
NODE_MODE = 0o666
DYNAMIC_MAJORS = range(254, 233, -1)  # where the kernel hands out character majors, from above


def majors(table: str) -> dict[str, int]:
    """Return the character devices of a /proc/devices text: name -> major."""
    text = table.partition("Block devices:")[0]
    return {name: int(major) for major, name in re.findall(r"^\s*(\d+) (\S+)$", text, re.MULTILINE)}


def with_driver(table: str) -> str:
    """Return a /proc/devices text to which the driver's majors are added.

    :param table: the text as the kernel shows it; lines of a driver added before are kept
    :raises ValueError: the major of real NVIDIA hardware is taken, or no dynamic major is left
    """
    known = majors(table)
    if "nvidia" in known:
        return table
    if GPU_MAJOR in known.values():
        raise ValueError(
            f"Major {GPU_MAJOR} belongs to a real driver here: GPUs cannot be simulated beside it."
        )
    free = [major for major in DYNAMIC_MAJORS if major not in known.values()]
    if len(free) < 2:
        raise ValueError("No dynamic device major is free for the simulated driver.")
    lines = f"{GPU_MAJOR} nvidia\n{GPU_MAJOR} nvidiactl\n{free[0]} nvidia-uvm\n{free[1]} nvidia-caps\n"
    head, blocks, rest = table.partition("\nBlock devices:")
    return head + lines + blocks + rest


def major(name: str) -> int:
    """Return the major that /proc/devices gives to a character device.

    :raises LookupError: no driver of that name is loaded
    """
    try:
        return majors(PROC_DEVICES.read_text())[name]
    except KeyError:
        raise LookupError(f"/proc/devices knows no {name}: the driver is not loaded.") from None


def make_node(path: Path, major: int, minor: int, mode: int) -> None:
    """Make a character device, or correct the one that is there."""
    device = os.makedev(major, minor)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        found = path.lstat()
        if not stat.S_ISCHR(found.st_mode) or found.st_rdev != device:
            path.unlink()
            raise FileNotFoundError
    except FileNotFoundError:
        os.mknod(path, stat.S_IFCHR | mode, device)
    path.chmod(mode)


def make_gpu_nodes(dev: Path, minors: list[int]) -> None:
    """Make the nodes that a loaded driver has: one for each GPU, control, modeset and unified memory."""
    for minor in minors:
        make_node(dev / f"nvidia{minor}", GPU_MAJOR, minor, NODE_MODE)
    make_node(dev / "nvidiactl", GPU_MAJOR, CONTROL_MINOR, NODE_MODE)
    make_node(dev / "nvidia-modeset", GPU_MAJOR, MODESET_MINOR, NODE_MODE)
    uvm = major("nvidia-uvm")
    make_node(dev / "nvidia-uvm", uvm, 0, NODE_MODE)
    make_node(dev / "nvidia-uvm-tools", uvm, 1, NODE_MODE)


def make_capability_node(dev: Path, capability: Path) -> None:
    """Make the node that a capability file in /proc/driver/nvidia/capabilities asks for.

    :raises ValueError: the file is no capability file
    """
    fields = dict(re.findall(r"^(\w+): (\d+)$", capability.read_text(), re.MULTILINE))
    try:
        minor, mode = int(fields["DeviceFileMinor"]), int(fields["DeviceFileMode"])
    except KeyError as error:
        raise ValueError(f"{capability} is no capability file: it has no {error.args[0]}.") from None
    make_node(dev / "nvidia-caps" / f"nvidia-cap{minor}", major("nvidia-caps"), minor, mode)
