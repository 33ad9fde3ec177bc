# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes use what is below a mount point, and so keep it from being unmounted.

Only names of files are read, as the kernel has them, so a file system that hangs does not hang the reader.
Source: proc(5), "/proc/pid/cwd", "root", "exe", "fd" and "maps".
"""

from __future__ import annotations

import pwd
from collections.abc import Iterator
from pathlib import Path


def users_of(path: str, proc: Path = Path("/proc")) -> list[str]:
    """Return the processes, each as ``NAME (PID) of USER``, in the order of their numbers.

    Args:
        path: absolute path of the mount point.
        proc: where the kernel tells of processes.
    """
    found = []
    for process in sorted(proc.glob("[0-9]*"), key=lambda one: int(one.name)):
        try:
            if any(name == path or name.startswith(path + "/") for name in _names(process)):
                found.append(described(process))
        except OSError:
            continue  # it has ended meanwhile
    return found


def described(process: Path) -> str:
    """Return a process as ``NAME (PID) of USER``.

    Args:
        process: its folder in ``/proc``.

    Raises:
        OSError: it has ended.
    """
    return f"{_name(process)} ({process.name}) of {_owner(process)}"


def _names(process: Path) -> Iterator[str]:
    """Yield the names of the folders, the program, and the open and mapped files of a process."""
    links = [process / name for name in ("cwd", "root", "exe")]
    for link in (*links, *(process / "fd").iterdir()):
        try:
            yield str(link.readlink())
        except OSError:
            continue  # closed meanwhile; or a thread of the kernel, which has none
    for line in (process / "maps").read_text(errors="replace").splitlines():
        yield line[line.find("/") :] if "/" in line else ""


def _name(process: Path) -> str:
    return (process / "comm").read_text(errors="replace").strip()


def _owner(process: Path) -> str:
    uid = process.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
