# SPDX-License-Identifier: GPL-3.0-or-later
"""The device nodes through which a slice is reached."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .slices import Slice

CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
DEV = Path("/dev")


class DeviceError(Exception):
    """A device node of the slice is missing; the text names it."""


@dataclass(frozen=True)
class DeviceNode:
    """A node and how it may be opened (``DeviceAllow=`` of systemd.resource-control(5))."""

    path: Path
    access: str


def nodes_of(piece: Slice, capabilities: Path = CAPABILITIES, dev: Path = DEV) -> list[DeviceNode]:
    """Return the nodes a notebook needs for this slice; make those that the driver has not made yet.

    A process that uses a MIG device opens the GPU's node and, read-only, the capabilities of the GPU
    instance and of the compute instance (NVIDIA MIG User Guide, "Device nodes and capabilities").

    Raises:
        DeviceError: a node is missing and cannot be made.
    """
    nodes = [DeviceNode(dev / name, "rw") for name in ("nvidiactl", f"nvidia{piece.gpu}", "nvidia-uvm")]
    if not nodes[-1].path.exists():
        _make_node(["-u", "-c", "0"])
    for access, node in _instance_nodes(piece, capabilities, dev):
        if not node.exists():
            _make_node(["-f", str(access)])
        nodes.append(DeviceNode(node, "r"))
    missing = [str(node.path) for node in nodes if not node.path.exists()]
    if missing:
        raise DeviceError(f"device nodes are missing: {', '.join(missing)}; is nvidia-modprobe installed?")
    # Profilers use it; CUDA does without.
    tools = DeviceNode(dev / "nvidia-uvm-tools", "rw")
    return [*nodes, tools] if tools.path.exists() else nodes


def keys_of(piece: Slice, capabilities: Path = CAPABILITIES, dev: Path = DEV) -> frozenset[str]:
    """Return the paths of the nodes that open this slice: its GPU's, and those of its instances.

    Raises:
        DeviceError: the driver does not know the slice's instances.
    """
    instances = (node for _access, node in _instance_nodes(piece, capabilities, dev))
    return frozenset(map(str, (dev / f"nvidia{piece.gpu}", *instances)))


def own_nodes_of(piece: Slice, capabilities: Path = CAPABILITIES, dev: Path = DEV) -> list[Path]:
    """Return the nodes that open this slice and no other.

    Raises:
        DeviceError: the driver does not know the slice's instances.
    """
    if piece.whole:
        return [dev / f"nvidia{piece.gpu}"]
    return [node for _access, node in _instance_nodes(piece, capabilities, dev)]


def _instance_nodes(piece: Slice, capabilities: Path, dev: Path) -> list[tuple[Path, Path]]:
    """Return the files that tell of a slice's GPU instance and compute instance, each with its node."""
    if piece.gpu_instance is None:
        return []
    instance = capabilities / f"gpu{piece.gpu}" / "mig" / f"gi{piece.gpu_instance}"
    files = (instance / "access", instance / f"ci{piece.compute_instance}" / "access")
    return [(file, dev / "nvidia-caps" / f"nvidia-cap{_minor(file)}") for file in files]


def nodes_of_all(pieces: Iterable[Slice]) -> list[DeviceNode]:
    """Return the nodes of several slices, each once.

    Raises:
        DeviceError: as `nodes_of`.
    """
    return list(dict.fromkeys(node for piece in pieces for node in nodes_of(piece)))


def _minor(access: Path) -> int:
    try:
        text = access.read_text(encoding="ascii")
    except OSError as error:
        raise DeviceError(f"the driver does not tell the device node of a slice: {error}") from error
    found = re.search(r"^DeviceFileMinor:\s*(\d+)", text, re.MULTILINE)
    if not found:
        raise DeviceError(f"{access} names no device minor")
    return int(found.group(1))


def _make_node(arguments: list[str]) -> None:
    try:
        subprocess.run(["nvidia-modprobe", *arguments], check=False, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise DeviceError(f"a device node is missing and nvidia-modprobe cannot make it: {error}") from error
