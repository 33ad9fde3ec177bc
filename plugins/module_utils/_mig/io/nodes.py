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


def missing_nodes(gpus: Iterable[Gpu]) -> tuple[Path, ...]:
    """Return the capability files whose device nodes are missing, of the partitions of some GPUs.

    Programs open these nodes to use a partition; the file names the node's minor number (MIG user guide,
    "Device Nodes and Capabilities"). Nothing is missing where nvidia-modprobe, which makes them, is missing.
    """
    if shutil.which("nvidia-modprobe") is None:
        return ()
    return tuple(file for file in _capability_files(gpus) if file.exists() and not _node(file).exists())


def make_nodes(gpus: Iterable[Gpu]) -> None:
    """Make the missing device nodes of the partitions of some GPUs, as the driver makes none by itself."""
    for file in missing_nodes(gpus):
        command = ["nvidia-modprobe", "-f", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not _node(file).exists():
            reason = done.stderr.strip() or "it gave no reason"
            raise GpuError(f"nvidia-modprobe made no device node for {file}: {reason}.")


def _capability_files(gpus: Iterable[Gpu]) -> Iterable[Path]:
    for gpu in gpus:
        for instance in gpu.instances:
            directory = CAPABILITIES / f"gpu{gpu.minor}" / "mig" / f"gi{instance.id}"
            yield directory / "access"
            for compute_instance in instance.compute_instances:
                yield directory / f"ci{compute_instance.id}" / "access"


def _node(capability_file: Path) -> Path:
    match = re.search(r"DeviceFileMinor:\s*([0-9]+)", capability_file.read_text(encoding="ascii"))
    if match is None:
        raise GpuError(f"{capability_file} names no device minor: report the version of this driver.")
    return CAPABILITY_NODES / f"nvidia-cap{match[1]}"
