# SPDX-License-Identifier: GPL-3.0-or-later
"""Modes of files in a state folder: for its owner alone, or for its group if the folder is shared with one.

A folder is shared if its group may write and new files get its group (mode 2770). Then the umask of an
operator takes nothing away from the group.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def shared(folder: Path) -> bool:
    """Tell whether a state folder is shared with a group.

    Args:
        folder: the folder.

    Returns:
        True if it is there, its group may write, and new files get its group.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


def of_file(folder: Path) -> int:
    """Tell the mode of files in a folder of a state.

    Args:
        folder: the folder.

    Returns:
        The mode.
    """
    return 0o660 if shared(folder) else 0o600


def make(folder: Path) -> None:
    """Make a folder in a folder of a state, unless it is there.

    Args:
        folder: the folder.

    Raises:
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if shared(folder.parent):
            folder.chmod(0o2770)


def opened(path: Path, flags: int) -> int:
    """Open a file in a folder of a state, and make it if it is missing.

    Args:
        path: the file.
        flags: as for `os.open`; a symbolic link is not followed.

    Returns:
        The file descriptor.

    Raises:
        OSError: it cannot be opened.
    """
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags | os.O_NOFOLLOW)
    os.fchmod(handle, of_file(path.parent))
    return handle
