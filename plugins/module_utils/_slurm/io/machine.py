# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what Slurm has to know of a machine: its name, processors, memory, GPUs, and its release of Slurm."""

from __future__ import annotations

import os
import re
import shutil
import socket
from functools import partial
from pathlib import Path
from typing import Any

from ..._host.io import timed
from ..._nvml.gpu import GpuError, slices
from ..._nvml.io import inspection, kernel_gpus
from ..._nvml.io.guarded import Guarded
from ..._nvml.io.python import use_gpu_python
from ..release import release
from ..topology import counted, memory_mib

CPUS = Path("/sys/devices/system/cpu")
MEMORY = Path("/proc/meminfo")
# Features of a node in Slurm by what the machine has. The role notebook_node installs what jobs of notebooks
# run; without it, or where that has failed, the file is not there.
FEATURES = {Path("/opt/jupyterhub-node/bin/jupyterhub-singleuser"): "notebooks"}
# Each tells its version without a configuration; the package is what could be installed.
PROGRAMS = ("slurmctld", "slurmd")
SECONDS = 20.0  # for one program


def prepare() -> None:
    """Go on with the Python that has the binding of NVML, if there are GPUs. Call this before all else."""
    if kernel_gpus.listed():
        use_gpu_python()


def read() -> dict[str, Any]:
    """Return what Slurm has to know of the machine.

    Raises:
        GpuError: when a GPU cannot be read.
        OSError: when the kernel tells nothing of processors or memory.
        ValueError: likewise.
    """
    threads = _threads()
    return {
        "hostname": socket.gethostname().partition(".")[0],
        "cpus": len(threads),
        **counted(threads),
        "memory_mib": memory_mib(MEMORY.read_text(encoding="ascii")),
        "devices": _devices(),
        "features": [feature for path, feature in FEATURES.items() if path.exists()],
        **_releases(),
    }


def _threads() -> list[tuple[int, int]]:
    """Return socket and core of each processor that is online."""
    found = []
    for folder in sorted(CPUS.glob("cpu[0-9]*/topology")):
        package, core = ((folder / name).read_text() for name in ("physical_package_id", "core_id"))
        found.append((int(package), int(core)))
    return found


def _devices() -> list[dict[str, Any]]:
    if not kernel_gpus.listed():
        return []
    found = Guarded().ask(partial(inspection.inspect, []))
    if found.survey.unreadable:
        raise GpuError(" ".join(map(str, found.survey.unreadable)))
    return [
        {
            "model": gpu.name,
            "mig": gpu.mig_enabled,
            "slices": [one["profile"] for one in slices((gpu,))],
        }
        for gpu in found.gpus
    ]


def _releases() -> dict[str, Any]:
    """Return which release is installed, which one apt would install, and whether it offers the plugin."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin"
    program = next(filter(None, (shutil.which(name, path=path) for name in PROGRAMS)), "")
    installed = release(timed.run([program, "-V"], SECONDS).output) if program else ""
    offered = _candidates("slurm-wlm-basic-plugins", "slurm-wlm-nvml-plugin")
    return {
        "installed_release": installed,
        "offered_release": release(offered.get("slurm-wlm-basic-plugins", "")),
        "nvml_plugin": "slurm-wlm-nvml-plugin" in offered,
    }


def _candidates(*packages: str) -> dict[str, str]:
    """Return the version that apt would install, or has, of each package that it knows."""
    if not shutil.which("apt-cache"):
        return {}
    policy = timed.run(["apt-cache", "policy", *packages], SECONDS).output
    return dict(re.findall(r"^(\S+):\n.*\n *Candidate: (\d.*)$", policy, re.MULTILINE))
