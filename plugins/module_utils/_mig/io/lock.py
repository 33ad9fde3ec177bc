# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One change of partitions at a time on a machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..._nvml.gpu import GpuError

# Gone after a reboot, as what it is about is.
FOLDER = Path("/run/gpufarm")
PATIENCE = 60  # seconds; a change takes a few, unless services are stopped or a GPU is reset
PAUSE = 0.2  # seconds


@contextlib.contextmanager
def locked(folder: Path = FOLDER, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of the machine; the kernel lets go of it when the process ends, however it ends.

    Args:
        folder: where the lock file `mig.lock` lies.
        patience: seconds to wait for another process that holds it.

    Raises:
        GpuError: when it is not free in time, or its file cannot be opened.
    """
    file = folder / "mig.lock"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Other users must not open the file, because they could hold the lock.
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise GpuError(
            f"The lock {file} cannot be opened ({error.strerror}): run this as root (become: true)."
        ) from error
    with os.fdopen(descriptor):
        until = time.monotonic() + patience
        while not _is_taken(descriptor):
            if time.monotonic() >= until:
                raise GpuError(
                    f"Another process changes the partitions of this machine and has held {file} for more"
                    f" than {patience:g} seconds: wait until it is done, and run again."
                )
            time.sleep(PAUSE)
        yield


def _is_taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
