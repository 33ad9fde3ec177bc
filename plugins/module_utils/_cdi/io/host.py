# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the devices of a machine for its CDI specification, and write its file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ..._host.io.files import replace_file
from ..._mig.io import nodes
from ..._nvml.gpu import Gpu, GpuError
from ..._nvml.io.session import Nvml
from .. import spec

# The folder is empty after a boot, as GPUs are: a container that asks for a slice before it is made again is
# refused, and never given the device nodes of another one.
SPECIFICATION = Path("/run/cdi/nvidia.yaml")
FOLDERS = (Path("/etc/cdi"), Path("/run/cdi"))
PROGRAMS = ("nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def specify(nvml: Nvml, gpus: tuple[Gpu, ...]) -> dict[str, Any] | None:
    """Return the specification of some GPUs, None when there is none that a container could use.

    Raises:
        GpuError: when something about the driver cannot be read.
    """
    names = spec.parse_libraries(_run(["ldconfig", "-p"]))
    real = {path: os.path.realpath(path) for path in names.values()}
    files = spec.driver_libraries(names, real, nvml.driver().version)
    for program in PROGRAMS:
        found = shutil.which(program, path=SEARCH_PATH)
        if found:
            files[found] = os.path.realpath(found)
    return spec.specification(
        gpus,
        nvml.slice_indexes(gpus),
        nodes.device_nodes(gpus),
        [path for path in spec.COMMON_NODES if Path(path).exists()],
        files,
        shutil.which("nvidia-cdi-hook", path=SEARCH_PATH) or "",
    )


def make_nodes(gpus: tuple[Gpu, ...]) -> None:
    """Make the device nodes that programs need; the driver makes none of them by itself."""
    nodes.make_nodes(gpus)
    if not Path("/dev/nvidia-uvm").exists() and shutil.which("nvidia-modprobe", path=SEARCH_PATH):
        _run(["nvidia-modprobe", "-u", "-c", "0"])


def other_specifications() -> list[Path]:
    """Return the other files that describe NVIDIA's GPUs: engines would offer what they say, too."""
    found = [file for folder in FOLDERS for file in (*folder.glob("*.yaml"), *folder.glob("*.json"))]
    return [
        file
        for file in sorted(found)
        if file != SPECIFICATION and spec.defines_gpus(file.read_text(encoding="utf-8", errors="replace"))
    ]


def read() -> str:
    """Return what the file holds; nothing when there is none."""
    try:
        return SPECIFICATION.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def write(content: str) -> None:
    """Replace the file as a whole, so that no engine reads half of one; empty content removes it."""
    if not content:
        SPECIFICATION.unlink(missing_ok=True)
        return
    SPECIFICATION.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # Engines read only what ends in .yaml or .json, and so not the new file before it is whole.
    replace_file(SPECIFICATION, content, 0o644)


def _run(command: list[str]) -> str:
    environment = {**os.environ, "PATH": SEARCH_PATH, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except FileNotFoundError as error:
        raise GpuError(f"The program {command[0]} is missing: install the package that has it.") from error
    if done.returncode != 0:
        raise GpuError(f"'{' '.join(command)}' failed: {done.stderr.strip() or 'it gave no reason'}.")
    return done.stdout
