# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and folders that are to be copied, looked through; folders, opened without following a link."""

from __future__ import annotations

import os
import posixpath
import stat
from pathlib import Path
from typing import NamedTuple

from ..._mounts.io.points import mounted
from ..declared import Place, StagingError, shown


class Content(NamedTuple):
    """How much there is: bytes, and number of files, folders and links."""

    size: int
    number: int


def folder_of(stores: dict[str, str], store: str) -> Path:
    """Return the folder of a store.

    Raises:
        StagingError: this machine does not have it, or its file system is not mounted.
    """
    folder = stores.get(store)
    if folder is None:
        raise StagingError(f"this machine has no store {shown(store)}")
    # This mounts file systems that are mounted on demand.
    if not os.access(f"{folder}/.", os.X_OK) or mounted(os.path.realpath(folder)) is None:
        raise StagingError(
            f"the store {store} is not mounted at {folder} on {os.uname().nodename}; ask an administrator"
        )
    return Path(folder)


def resolved(stores: dict[str, str], place: Place) -> Path:
    """Return the path of a place, without the symbolic links that lead there; the last part may be missing.

    Raises:
        StagingError: it leads to no store, or the folder above it is missing.
    """
    folder = folder_of(stores, place.store)
    try:
        path = Path(os.path.realpath(folder / place.path))
        above = path.parent.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "a loop of symbolic links"
        raise StagingError(f"{place} cannot be reached: {why}") from None
    roots = [os.path.realpath(root) for root in stores.values()]
    if not any(os.path.commonpath([root, above]) == root for root in roots) or str(path) in roots:
        raise StagingError(f"{place} leads out of the stores, to {shown(str(path))}; declare data in a store")
    return path


def content(top: Path, name: str) -> Content:
    """Look through a file or folder that is to be copied.

    Args:
        top: its path.
        name: how the user calls it.

    Raises:
        StagingError: it is missing, or something in it cannot be copied: unreadable, a device, or a symbolic
            link that leads elsewhere, which would be another file, or none, beside the copy.
    """
    try:
        found = os.lstat(top)
        _refuse(found, top, top, name)
        size, number = (0 if stat.S_ISDIR(found.st_mode) else found.st_size), 1
        folders = [top] if stat.S_ISDIR(found.st_mode) else []
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    path, info = Path(entry.path), entry.stat(follow_symlinks=False)
                    _refuse(info, path, top, name)
                    number += 1
                    if stat.S_ISREG(info.st_mode):
                        size += info.st_size
                    elif stat.S_ISDIR(info.st_mode):
                        folders.append(path)
    except OSError as error:
        where = f" ({shown(str(error.filename))})" if error.filename and error.filename != str(top) else ""
        raise StagingError(f"{name} cannot be read: {error.strerror}{where}") from None
    return Content(size, number)


def _refuse(found: os.stat_result, path: Path, top: Path, name: str) -> None:
    inside = "it" if path == top else shown(str(path.relative_to(top)))
    if stat.S_ISLNK(found.st_mode):
        target = str(path.readlink())
        if path == top or leads_out(str(path.parent.relative_to(top)), target):
            raise StagingError(
                f"{name} cannot be copied: {inside} is a symbolic link that leads out of it, to"
                f" {shown(target)}; declare the data themselves"
            )
    elif stat.S_ISDIR(found.st_mode):
        if not os.access(path, os.R_OK | os.X_OK):
            raise StagingError(f"{name} cannot be read: you may not open {inside}")
    elif not stat.S_ISREG(found.st_mode):
        raise StagingError(f"{name} cannot be copied: {inside} is neither a file nor a folder")
    elif not os.access(path, os.R_OK):
        raise StagingError(f"{name} cannot be read: you may not read {inside}")


def leads_out(folder: str, target: str) -> bool:
    """Return whether a symbolic link leads out of the tree that it is in.

    Args:
        folder: of the link, relative to the top of the tree.
        target: what it has in it.
    """
    end = posixpath.normpath(posixpath.join(folder, target))
    return end.startswith("/") or end.split("/")[0] == ".."


def opened(path: Path) -> int:
    """Open a folder of which no part is a symbolic link, so that nobody can lead a copy elsewhere.

    Args:
        path: an absolute path, as `resolved` returns it.

    Raises:
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open("/", flags)
    for part in path.parts[1:]:
        try:
            inner = os.open(part, flags, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder
