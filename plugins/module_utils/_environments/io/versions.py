# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of environments on the disk of this machine, and which processes use them."""

from __future__ import annotations

import json
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._mounts import table
from ..._mounts.io.users import described, users_of

# The module python_environment writes it.
RECORD = ".python_environment.json"
MOUNTS, PROCESSES = Path("/proc/self/mountinfo"), Path("/proc")
# File systems that one machine has for itself; of all others, other machines may use what is there.
LOCAL = ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs")


@dataclass(frozen=True)
class Version:
    """A version of an environment: whether it was built to the end, and which processes use it."""

    name: str
    version: str
    complete: bool
    users: tuple[str, ...]


def versions(folder: Path) -> list[Version]:
    """Return what the module python_environment has built below a folder."""
    records = sorted(folder.glob(f"*/*/{RECORD}")) if folder.is_dir() else []
    return [
        Version(path.parts[-3], path.parts[-2], _complete(path), _users(path.parent))
        for path in records
        if not path.parent.is_symlink() and not path.parents[1].is_symlink()
    ]


def remove(folder: Path, version: Version) -> None:
    """Remove a version, then the folder of its environment and that of all if they are empty.

    Raises:
        OSError: not all of it could be removed.
    """
    path = folder / version.name / version.version
    record = _read(path / RECORD)
    # The record goes last, or an interrupted removal would leave a folder that nobody finds again; until then
    # it says that there is no environment.
    (path / RECORD).write_text(json.dumps({**record, "created": False, "complete": False}), encoding="utf-8")
    for part in path.iterdir():
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part)
        elif part.name != RECORD:
            part.unlink()
    shutil.rmtree(path)
    for parent in (path.parent, folder):
        if not any(parent.iterdir()):
            parent.rmdir()


def free(folder: Path) -> int:
    """Return the bytes that are free where a folder is, or will be."""
    return shutil.disk_usage(_there(folder)).free


def is_shared(folder: Path, mounts: Path = MOUNTS) -> bool:
    """Tell whether the folder is on a file system that other machines may have mounted too."""
    text = mounts.read_text(encoding="utf-8", errors="replace")
    found = table.mount_of(str(_there(folder).resolve()), table.parse(text))
    return found is None or found.kind not in LOCAL


def unsafe(folder: Path) -> str:
    """Return the first part of a path in which others than root can make files; empty for none."""
    for path in [*reversed(folder.parents), folder]:
        try:
            seen = path.stat()
        except FileNotFoundError:
            break
        if seen.st_uid != 0 or seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return str(path)
    return ""


def _users(path: Path) -> tuple[str, ...]:
    """Return the processes that use a version, and the notebook servers that offer its kernel."""
    paths = {str(path), str(path.resolve())}
    found = [one for name in sorted(paths) for one in users_of(name, PROCESSES)]
    for process in PROCESSES.glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes()
            if any(name.encode() in variables for name in paths):
                found.append(described(process))
        except OSError:
            continue  # it has ended meanwhile
    return tuple(dict.fromkeys(found))


def _there(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _complete(record: Path) -> bool:
    return bool(_read(record).get("complete"))


def _read(record: Path) -> dict[str, Any]:
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
