# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are going to be removed, in one area. Links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DAY = 86400.0


class Ageing(NamedTuple):
    """A file that is going to be removed: its path in the area, its size in bytes, and in how many days."""

    path: str
    size: int
    days: float


def ageing(area: Path, days: int, within: int, now: float) -> Iterator[Ageing]:
    """Return the files that are going to be removed.

    Args:
        area: a folder.
        days: age at which files are removed.
        within: days from now on.
        now: the time, in seconds since 1970.

    Raises:
        OSError: the area cannot be read.
    """
    top = os.open(area, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        device = os.fstat(top).st_dev
        for folder, folders, files, descriptor in os.fwalk(".", dir_fd=top):
            # Links to folders are among the folders here, and are files to systemd-tmpfiles.
            found = {name: seen for name in (*folders, *files) if (seen := _seen(name, descriptor))}
            # It leaves other file systems alone.
            folders[:] = [name for name in folders if name in found and found[name].st_dev == device]
            for name, seen in found.items():
                left = days - (now - max(seen.st_atime, seen.st_mtime, seen.st_ctime)) / DAY
                if left <= within and not stat.S_ISDIR(seen.st_mode) and not stat.S_ISSOCK(seen.st_mode):
                    yield Ageing(str(Path(folder, name)), seen.st_size, max(left, 0.0))
    finally:
        os.close(top)


def _seen(name: str, descriptor: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:  # removed meanwhile
        return None
