# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that hold GPUs, stopped for a change of MIG mode and brought back afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..._host.io.files import replace_file
from ..._nvml.gpu import Gpu, GpuError
from .lock import FOLDER

RUNNING = ("active", "activating", "reloading")
PROCESSES = Path("/proc")


class Services:
    """Units that may be stopped.

    Which of them were is noted in a file before they are, so that the next run brings them back when this one
    is killed.
    """

    def __init__(self, units: Iterable[str] = (), folder: Path = FOLDER) -> None:
        self._units = tuple(dict.fromkeys(units))
        self._note = folder / "mig-stopped-services"

    @property
    def stopped(self) -> tuple[str, ...]:
        """The units that were stopped, by this run or by one that was killed, in that order."""
        return tuple(self._note.read_text(encoding="utf-8").split()) if self._note.exists() else ()

    def stop(self) -> bool:
        """Stop those that run.

        Returns:
            whether there were any.

        Raises:
            GpuError: when one of them does not stop.
        """
        running = [unit for unit in self._units if state(unit) in RUNNING]
        if not running:
            return False
        noted = (*self.stopped, *(unit for unit in running if unit not in self.stopped))
        self._note.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(self._note, "\n".join(noted) + "\n", 0o644)
        for unit in running:
            _systemctl("stop", unit)
        return True

    def bring_back(self) -> tuple[str, ...]:
        """Start the units that were stopped, the last one first.

        Returns:
            a sentence for each that does not start.
        """
        problems = []
        for unit in reversed(self.stopped):
            try:
                _systemctl("start", unit)
            except GpuError as error:
                problems.append(str(error))
        self._note.unlink(missing_ok=True)
        return tuple(problems)

    def processes(self, gpus: Iterable[Gpu]) -> frozenset[int]:
        """Return the ids of those processes on GPUs that belong to the units."""
        pids = {process.pid for gpu in gpus for process in gpu.processes if process.pid is not None}
        return frozenset(pid for pid in pids if not _units_of(pid).isdisjoint(self._units))


def state(unit: str) -> str:
    """Return the state of a unit, "inactive" if it is not there (systemctl(1), ActiveState).

    Raises:
        GpuError: when systemd does not answer.
    """
    return _systemctl("show", "--property=ActiveState", "--value", unit).strip()


def _units_of(pid: int) -> set[str]:
    """Return the names in a process's control group, the unit that it belongs to among them."""
    try:
        lines = (PROCESSES / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {name for line in lines for name in line.split(":", 2)[2].split("/")}


def _systemctl(*words: str) -> str:
    command = ["systemctl", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise GpuError(f"'{' '.join(command)}' cannot be run, as there is no systemctl here.") from error
    if done.returncode != 0:
        reason = done.stderr.strip() or "it gave no reason"
        raise GpuError(f"'{' '.join(command)}' failed: {reason}")
    return done.stdout
