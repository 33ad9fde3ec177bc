# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are going to be removed, in one area. Links are never followed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DAY = 86400.0
# As systemd-tmpfiles does: what is on other file systems stays, and so do sockets (tmpfiles.d(5)).
_FIND = ("-P", "{area}", "-mindepth", "1", "-xdev", "-not", "-type", "d", "-not", "-type", "s")
_TOLD = ("-printf", r"%A@ %T@ %C@ %s %P\0")


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
        OSError: there is no program find.
    """
    words = ["find", *(word.format(area=area) for word in _FIND), *_TOLD]
    # Files that vanish meanwhile are complained of, and no error.
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        output: Any = process.stdout
        rest = b""
        while chunk := output.read(1 << 20):
            *entries, rest = (rest + chunk).split(b"\0")
            for entry in entries:
                *times, size, path = entry.split(b" ", 4)
                left = days - (now - max(map(float, times))) / DAY
                if left <= within:
                    yield Ageing(path.decode("utf-8", "surrogateescape"), int(size), max(left, 0.0))
