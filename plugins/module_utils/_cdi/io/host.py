# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the devices of a machine for its CDI specification, and write its file."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._host.io import timed
from ..._host.io.files import replace_file
from ..._mig.io import nodes
from ..._nvml.gpu import Gpu, GpuError, Survey
from ..._nvml.io import session
from ..._nvml.io.guarded import Calls
from .. import spec

# The folder is empty after a boot, as GPUs are: a container that asks for a slice before it is made again is
# refused, and never given the device nodes of another one.
SPECIFICATION = Path("/run/cdi/nvidia.yaml")
FOLDERS = (Path("/etc/cdi"), Path("/run/cdi"))
PROGRAMS = ("nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
# Seconds; it reads all GPUs and searches the folders of libraries.
TOOLKIT_TIMEOUT = 60.0
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Found:
    """GPUs of a machine, the indexes of slices on their GPUs by UUID, the version of the driver."""

    survey: Survey
    indexes: dict[str, int]
    driver_version: str


def inspect(calls: Calls) -> Found:
    """Return what NVML tells for the specification.

    Raises:
        GpuError: when something cannot be read.
    """
    with session.session(calls) as nvml:
        survey = nvml.survey()
        return Found(survey, nvml.slice_indexes(survey.gpus), nvml.driver().version)


def specify(found: Found, warn: Callable[[str], object]) -> dict[str, Any] | None:
    """Return the specification of the GPUs, None when there is none that a container could use.

    Libraries and hooks are those of NVIDIA's toolkit, or our choice where it is not installed or fails.

    Args:
        warn: called with a sentence when the toolkit fails.

    Raises:
        GpuError: when something about the driver cannot be read.
    """
    gpus = found.survey.gpus
    devices = spec.devices(gpus, found.indexes, nodes.device_nodes(gpus))
    if not devices:
        return None
    common_nodes = [path for path in spec.COMMON_NODES if Path(path).exists()]
    toolkit = shutil.which("nvidia-ctk", path=SEARCH_PATH)
    if toolkit:
        try:
            version, edits = spec.toolkit_edits(_generated(toolkit), common_nodes)
            return spec.specification(devices, edits, version)
        except GpuError as error:
            warn(
                f"{error} Containers get libraries for computing only, none for graphics or storage; see"
                f" '{toolkit} cdi generate'."
            )
    return spec.specification(devices, _own_edits(found.driver_version, common_nodes))


def _generated(toolkit: str) -> str:
    """Return the specification that the toolkit generates.

    Raises:
        GpuError: it fails, as it does when any GPU cannot be read, or hangs.
    """
    done = timed.run([toolkit, "--quiet", "cdi", "generate", "--mode=nvml", "--format=json"], TOOLKIT_TIMEOUT)
    if done.status is None:
        raise GpuError(f"'{toolkit} cdi generate' did not end within {TOOLKIT_TIMEOUT:g} s.")
    if done.status != 0:
        said = " ".join(done.errors.split()[-40:]) or "it gave no reason"
        raise GpuError(f"'{toolkit} cdi generate' failed: {said}.")
    return done.output


def _own_edits(driver_version: str, common_nodes: list[str]) -> dict[str, Any]:
    names = spec.parse_libraries(_run(["ldconfig", "-p"]))
    real = {path: os.path.realpath(path) for path in names.values()}
    files = spec.driver_libraries(names, real, driver_version)
    for program in PROGRAMS:
        found = shutil.which(program, path=SEARCH_PATH)
        if found:
            files[found] = os.path.realpath(found)
    return spec.common_edits(common_nodes, files, shutil.which("nvidia-cdi-hook", path=SEARCH_PATH) or "")


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
