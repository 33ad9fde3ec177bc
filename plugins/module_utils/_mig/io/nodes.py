# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes of partitions: programs open them to use one, and the driver makes none by itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..._nvml.gpu import Gpu, GpuError

CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
CAPABILITY_NODES = Path("/dev/nvidia-caps")


def device_nodes(gpus: Iterable[Gpu]) -> dict[str, Path]:
    """Return the device node of each partition of some GPUs that the driver tells one of.

    Returns:
        paths of nodes by `Gpu.capability`.
    """
    return {
        name: _node(CAPABILITIES / name) for name in _capabilities(gpus) if (CAPABILITIES / name).exists()
    }


def missing_nodes(gpus: Iterable[Gpu]) -> tuple[Path, ...]:
    """Return the capability files whose device nodes are missing, of the partitions of some GPUs.

    Programs open these nodes to use a partition; the file names the node's minor number (MIG user guide,
    "Device Nodes and Capabilities"). Nothing is missing where nvidia-modprobe, which makes them, is missing.
    """
    if shutil.which("nvidia-modprobe") is None:
        return ()
    return tuple(CAPABILITIES / name for name, node in device_nodes(gpus).items() if not node.exists())


def make_nodes(gpus: Iterable[Gpu]) -> None:
    """Make the missing device nodes of the partitions of some GPUs, as the driver makes none by itself."""
    for file in missing_nodes(gpus):
        command = ["nvidia-modprobe", "-f", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not _node(file).exists():
            reason = done.stderr.strip() or "it gave no reason"
            raise GpuError(f"nvidia-modprobe made no device node for {file}: {reason}.")


def _capabilities(gpus: Iterable[Gpu]) -> Iterable[str]:
    for gpu in gpus:
        for instance in gpu.instances:
            yield gpu.capability(instance)
            for compute_instance in instance.compute_instances:
                yield gpu.capability(instance, compute_instance)


def _node(capability_file: Path) -> Path:
    match = re.search(r"DeviceFileMinor:\s*([0-9]+)", capability_file.read_text(encoding="ascii"))
    if match is None:
        raise GpuError(f"{capability_file} names no device minor: report the version of this driver.")
    return CAPABILITY_NODES / f"nvidia-cap{match[1]}"
