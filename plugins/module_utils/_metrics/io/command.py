# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-metrics: write the metrics of GPUs for the node exporter, again and again."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from ..._host.io.files import replace_file
from ..._nvml.io.guard import is_stuck
from ..gpu import GpuUse, Use, render
from .read import read_certificates, read_gpus, read_holders


def main() -> int:
    """Write the metrics once; the exit status is 1 when not everything could be told.

    The command line has the path of the settings, a JSON file with `call_timeout` (seconds), `textfile`,
    `leases`, `certificates` (paths by name), `stuck_file` (where a process that hangs is remembered) and
    `gpus` (whether there are GPUs to read).
    """
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    gpus: tuple[GpuUse, ...] = ()
    problem = ""
    if settings["gpus"]:
        gpus, problem = _gpus(settings["call_timeout"], Path(settings["stuck_file"]))
    holders, holders_problem = read_holders(Path(settings["leases"]))
    use = Use(gpus, problem, holders, holders_problem, read_certificates(settings["certificates"]))
    replace_file(Path(settings["textfile"]), render(use, time.time()), 0o644)
    for sentence in filter(None, (problem, holders_problem)):
        sys.stderr.write(f"{sentence}\n")
    return int(bool(problem or holders_problem))


def _gpus(call_timeout: float, stuck_file: Path) -> tuple[tuple[GpuUse, ...], str]:
    """Read the GPUs but those at which a process of an earlier run still hangs: they must not pile up."""
    held = {index: process for index, process in _remembered(stuck_file).items() if is_stuck(process)}
    gpus, problem, stuck = read_gpus(call_timeout, held)
    replace_file(stuck_file, json.dumps(list((held | stuck).items())), 0o600)
    return gpus, problem


def _remembered(stuck_file: Path) -> dict[int | None, str]:
    """Return the processes that hung, by GPU; none where the file cannot be read."""
    try:
        found = json.loads(stuck_file.read_text(encoding="utf-8"))
        return {index: str(process) for index, process in found}
    except (OSError, ValueError, TypeError):
        return {}
