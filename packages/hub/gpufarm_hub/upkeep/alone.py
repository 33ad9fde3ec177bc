# SPDX-License-Identifier: GPL-3.0-or-later
"""One hub per machine: two of them would give the same slice to two users."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK = Path("/run/gpufarm-hub.lock")  # not in /run/lock, where every user can make it first


class SecondHubError(Exception):
    """Another hub hands out the slices of this machine; the text names its process."""


def on_this_machine(lock: Path = LOCK) -> None:
    """Make sure that this process is the only hub until it ends.

    Args:
        lock: a file that all hubs of the machine know, whatever their configuration.

    Raises:
        SecondHubError: there is another one.
    """
    # The descriptor stays open: the kernel gives up the lock when the process ends, however it ends.
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 20).decode(errors="replace").strip()
        os.close(descriptor)
        raise SecondHubError(
            f"The hub with process id {holder or 'unknown'} hands out the GPU slices of this machine "
            "already; stop it before you start another one."
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
