# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of environments on the disk of this machine, and which processes use them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..._mounts import table
from ..._mounts.io.users import users_of
from ..._shared_home.place import NETWORK

# The module python_environment writes it.
RECORD = ".python_environment.json"
MOUNTS = Path("/proc/self/mountinfo")


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
        Version(path.parts[-3], path.parts[-2], _complete(path), tuple(users_of(str(path.parent))))
        for path in records
        if not path.parent.is_symlink() and not path.parents[1].is_symlink()
    ]


def remove(folder: Path, version: Version) -> None:
    """Remove a version, then the folder of its environment and that of all if they are empty.

    Raises:
        OSError: not all of it could be removed.
    """
    path = folder / version.name / version.version
    # Without its record last, an interrupted removal would leave a folder that nobody finds again.
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
    return found is not None and found.kind in NETWORK


def _there(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _complete(record: Path) -> bool:
    try:
        return bool(json.loads(record.read_text(encoding="utf-8"))["complete"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
