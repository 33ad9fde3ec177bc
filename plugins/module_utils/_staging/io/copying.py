# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies that go on where they were interrupted, are compared by checksums, and appear as a whole.

rsync copies into a folder of our own beside the goal. Its folder of work is one that is held open, so a link
that somebody puts in the way meanwhile leads it nowhere.

Source: rsync(1), --append-verify, --checksum, --itemize-changes, EXIT VALUES.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ..declared import OWN, StagingError, shown
from . import trees

_PASSES = 4
_COPY = ("--recursive", "--links", "--times", "--perms", "--delete")
# Names of what differs, in content or kind; times and rights are no part of it.
_COMPARE = ("--recursive", "--links", "--checksum", "--delete", "--dry-run", "--itemize-changes")
_NO_ROOM = 11  # "Error in file I/O", as when the disk or a quota is full
_DATA = "data"
_PARTIAL = 200  # bytes of the name of a folder, of 255


def bring(source: Path, folder: Path, name: str, job: int, replace: bool) -> None:
    """Copy a file or folder. It appears under its name when it is whole and has been compared.

    Args:
        source: an absolute path.
        folder: where it goes; no part of the path is a symbolic link.
        name: its name there.
        job: number of the job whose data it is.
        replace: whether something else of that name makes room.

    Raises:
        StagingError: it cannot be copied, or something else has the name.
    """
    try:
        goal = trees.opened(folder)
    except OSError as error:
        raise StagingError(f"{shown(str(folder))} cannot be opened: {error.strerror}") from None
    partial = f"{OWN}-{job}-{name}".encode("utf-8", "surrogateescape")[:_PARTIAL].decode(
        "utf-8", "surrogateescape"
    )
    try:
        if not _exists(name, goal) or _differs(source, f"./{name}", goal):
            if _exists(name, goal) and not replace:
                raise _taken(folder, name)
            inner = _own_folder(partial, goal)
            try:
                _copy(source, inner)
                _put(inner, goal, folder, name, replace)
            finally:
                os.close(inner)
        if _exists(partial, goal):
            os.close(_own_folder(partial, goal))
            _run(["rm", "-rf", "--one-file-system", "--", f"./{partial}"], goal)
    except OSError as error:
        raise StagingError(
            f"{shown(name)} cannot be written to {shown(str(folder))}: {error.strerror}"
        ) from None
    finally:
        os.close(goal)


def _own_folder(name: str, above: int) -> int:
    """Open the folder of a copy that is not whole yet, which is made unless an earlier run has left it.

    The folder above gives its group to all that is made there if it has the set-group-ID bit (inode(7)).
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=above)
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    if os.fstat(folder).st_uid != os.getuid():
        os.close(folder)
        raise StagingError(f"{shown(name)} is there and belongs to somebody else; its owner must remove it")
    os.fchmod(folder, 0o700 | os.fstat(above).st_mode & stat.S_ISGID)
    return folder


def _copy(source: Path, inner: int) -> None:
    """Copy until both are the same.

    The first pass appends to what an interrupted one has written. Sizes and times say nothing of the content
    of such a file, so a pass that has changed too little is followed by one that compares all content.
    """
    rights = "u+rwX,Dg+s" if os.fstat(inner).st_mode & stat.S_ISGID else "u+rwX"
    how, complaint = "--append-verify", ""
    for _number in range(_PASSES):
        done = _rsync([*_COPY, f"--chmod={rights}", how], source, f"./{_DATA}", inner)
        if done.returncode == 0:
            _run(["sync", "--file-system", "."], inner)
            complaint = _differs(source, f"./{_DATA}", inner)
            if not complaint:
                return
            how = "--checksum"
        else:
            complaint = _last_line(done)
            if done.returncode == _NO_ROOM:
                break
    raise StagingError(f"the copy of {shown(str(source))} is not the same as what was copied: {complaint}")


def _differs(source: Path, copy: str, folder: int) -> str:
    """Return what differs first between the content of both; empty for nothing.

    Raises:
        StagingError: they cannot be compared.
    """
    if source.is_dir() != stat.S_ISDIR(os.stat(copy, dir_fd=folder, follow_symlinks=False).st_mode):
        return "one is a folder, the other is none"
    done = _rsync(list(_COMPARE), source, copy, folder)
    if done.returncode:
        raise StagingError(f"the copy of {shown(str(source))} cannot be compared: {_last_line(done)}")
    return shown(done.stdout.split("\n", 1)[0])


def _put(inner: int, goal: int, folder: Path, name: str, replace: bool) -> None:
    """Give the copy its name, in one step that fails if something has the name.

    Neither a folder takes the place of another one that holds something, nor a second link that of a file.
    """
    if replace and _exists(name, goal):
        # It goes with the folder of the copy.
        os.rename(name, f"before-{time.time_ns()}", src_dir_fd=goal, dst_dir_fd=inner)
    is_folder = stat.S_ISDIR(os.stat(_DATA, dir_fd=inner, follow_symlinks=False).st_mode)
    try:
        if is_folder:
            if _exists(name, goal):
                raise _taken(folder, name)
            os.rename(_DATA, name, src_dir_fd=inner, dst_dir_fd=goal)
        else:
            os.link(_DATA, name, src_dir_fd=inner, dst_dir_fd=goal, follow_symlinks=False)
    except (FileExistsError, NotADirectoryError):
        raise _taken(folder, name) from None
    os.fsync(goal)


def _taken(folder: Path, name: str) -> StagingError:
    return StagingError(f"{shown(str(folder / name))} is there already and stays as it is; move it away")


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _rsync(options: Sequence[str], source: Path, copy: str, folder: int) -> subprocess.CompletedProcess[str]:
    behind = "/" if source.is_dir() else ""
    return _run(["rsync", *options, "--", f"{source}{behind}", f"{copy}{behind}"], folder)


def _run(words: list[str], folder: int) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("RSYNC_")}
    return subprocess.run(
        words,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        cwd=f"/proc/self/fd/{folder}",
        env={**environment, "LC_ALL": "C"},
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a program complained of first, which has the reason, in one line."""
    lines = done.stderr.strip().splitlines()
    return shown(lines[0]) if lines else f"rsync ended with status {done.returncode}"
