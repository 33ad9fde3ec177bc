# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of this notebook that the kernel of the machine killed because they needed too much memory."""

from __future__ import annotations

import time
from pathlib import Path

SHOWN = 900  # seconds for which a notice is shown after it was seen first
GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


class Memory:
    """Looks after the programs of one notebook server.

    Args:
        own: file of the kernel that names the control groups of this process (cgroups(7)).
        groups: where control groups are mounted.
    """

    def __init__(self, own: Path = OWN, groups: Path = GROUPS) -> None:
        self._own, self._groups = own, groups
        self._killed = self._count()
        self._until = 0.0

    def notice(self) -> str:
        """Return what the user is told; empty for nothing."""
        killed = self._count()
        if killed > self._killed:
            self._killed, self._until = killed, time.monotonic() + SHOWN
        if time.monotonic() > self._until:
            return ""
        return (
            "A program of this notebook, such as a kernel, was killed because the notebook needed more "
            "memory than it has. Close kernels that you do not need, load less at once, or stop the notebook "
            "and choose more memory in the form."
        )

    def _count(self) -> int:
        """Return how many were killed since the notebook began; 0 where the kernel does not say."""
        try:
            lines = self._own.read_text(encoding="utf-8").splitlines()
            # Hierarchy, controllers, and path; version 2 has hierarchy 0 and names no controllers.
            paths = {names: path for _id, names, path in (line.split(":", 2) for line in lines)}
            if "memory" in paths:
                file = self._groups / "memory" / paths["memory"].lstrip("/") / "memory.oom_control"
            else:
                file = self._groups / paths[""].lstrip("/") / "memory.events"
            told = dict(line.split() for line in file.read_text(encoding="utf-8").splitlines())
            return int(told["oom_kill"])
        except (OSError, KeyError, ValueError):
            return 0
