# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that holds what earlier health checks saw, safe against a second run and a sudden end."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ..._host.io.files import replace_file
from ..baseline import Baseline, dump, load

FOLDER = Path("/var/lib/gpufarm/health")
VERDICTS = Path("/run/gpufarm/health")  # they hold until the next boot


def read(folder: Path = FOLDER) -> Baseline:
    """Return what is stored; an empty baseline when nothing is.

    Raises:
        HealthError: when the file is damaged.
    """
    try:
        return load((folder / "state.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Baseline()


def write(baseline: Baseline, folder: Path = FOLDER) -> None:
    """Store a baseline; the caller holds the lock."""
    replace_file(folder / "state.json", dump(baseline), 0o644)


def write_verdicts(text: str, folder: Path = VERDICTS) -> None:
    """Store what services that hand out GPUs read: `report.verdicts`."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace_file(folder / "verdicts.json", text, 0o644)


@contextlib.contextmanager
def lock(folder: Path = FOLDER) -> Iterator[None]:
    """Wait until no other run writes, and keep others from it."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
