# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Mesos whose agent has its own GPU isolator and finds simulated GPUs (root only)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.bench import cache_dir
from lab.mesos.real import HERE, Mesos, ldcache
from lab.nvmlsim.build import build
from lab.nvmlsim.install import GUEST
from lab.patience import PATIENCE

GPUS = 4
MODEL = "a100-80gb"


class GpuMachine:
    """GPUs of a machine on which an agent of Mesos can be started, again and again.

    :param folder: of its own
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.library = build(cache_dir())
        self.simulated = {"NVMLSIM_STATE": str(folder / "gpus"), "NVMLSIM_LIBRARY": str(self.library)}
        folder.mkdir(parents=True)
        ldcache.write(folder / "ld.so.cache")
        words = ("init", "--dev", "/dev", "--run", folder / "proc", f"{MODEL}:{GPUS}")
        self.run(sys.executable, GUEST / "simgpu.py", *words)

    def run(self, *words: str | Path) -> str:
        """Run a program on the machine, and return what it says."""
        environment = {**os.environ, **self.simulated, "LD_LIBRARY_PATH": str(self.library.parent)}
        done = subprocess.run(
            [*self._enter(""), *words], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def _enter(self, cache: str | Path) -> tuple[str | Path, ...]:
        return (HERE / "programs" / "gpu-machine", str(GPUS), cache)

    @contextmanager
    def mesos(
        self,
        name: str,
        resources: str,
        options: Mapping[str, str],
        old_cache: bool = True,
        rights: Sequence[str] = (),
    ) -> Iterator[Mesos]:
        """Run Mesos with one agent on it.

        :param name: of this run, for its folder and its control groups
        :param options: as `Mesos` takes them
        :param old_cache: whether the machine's cache of libraries is one that Mesos 1.11.0 can read
        :param rights: the only capabilities that Mesos may have; empty for all
        """
        cache: str | Path = self.folder / "ld.so.cache" if old_cache else ""
        group = f"mesos-{os.getpid()}-{name}"
        fixed = {
            "MESOS_LAUNCHER": "linux",
            "MESOS_SYSTEMD_ENABLE_SUPPORT": "false",
            "MESOS_CGROUPS_ROOT": group,
        }
        running = Mesos(self.folder / name, 1, resources, {**fixed, **options, **self.simulated})
        running.environment["LD_LIBRARY_PATH"] += f":{self.library.parent}"
        running.before = self._enter(cache)
        if rights:
            bound = ",".join(f"+{right.lower()}" for right in rights)
            running.before += ("setpriv", "--bounding-set", f"-all,{bound}")
        try:
            yield running.start()
        finally:
            running.stop()
            _remove_groups(group)


def _remove_groups(name: str) -> None:
    """End what is left in the control groups of a run, and remove them."""
    groups = [path for top in Path("/sys/fs/cgroup").glob(f"*/{name}") for path in [top, *top.rglob("*/")]]
    for group in sorted(groups, key=lambda path: -len(path.parts)):
        for process in (group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                group.rmdir()
                break
            except OSError:  # a process takes a moment to end
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
