# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder as a file system that shows another device, and ends writing at the hard limits of quotas."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import fusepy as fuse

from . import quota


class Folder(fuse.Operations):  # type: ignore[misc]  # fuse.py has no types
    """Hands everything on to a folder; the kernel checks permissions (default_permissions)."""

    use_ns = True

    def __init__(self, name: str, root: str) -> None:
        self.name = name
        self.root = root

    def __call__(self, op: str, *args: Any) -> Any:
        try:
            return super().__call__(op, *args)
        except OSError as error:
            raise fuse.FuseOSError(error.errno) from error

    def path(self, path: str) -> Path:
        return Path(self.root + path)

    def own(self, path: str) -> None:
        """Give a new file to its creator, or to the group of its folder as setgid has it."""
        uid, gid, _pid = fuse.fuse_get_context()
        folder = self.path(path).parent.stat()
        gid = folder.st_gid if folder.st_mode & stat.S_ISGID else gid
        os.chown(self.path(path), uid, gid, follow_symlinks=False)

    def check(self, path: str, size: int, files: int) -> None:
        uid, gid, _pid = fuse.fuse_get_context()
        full = self.path(path)
        if full.exists():
            uid, gid = full.stat().st_uid, full.stat().st_gid
        if uid != 0 and quota.exceeded(self.name, str(full), uid, gid, size // 1024, files):
            raise fuse.FuseOSError(errno.EDQUOT)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        found = os.lstat(self.path(path))
        names = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_ino")
        times = {f"st_{one}": getattr(found, f"st_{one}_ns") for one in ("atime", "mtime", "ctime")}
        return {**{name: getattr(found, name) for name in names}, **times}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *(one.name for one in self.path(path).iterdir())]

    def readlink(self, path: str) -> str:
        return str(self.path(path).readlink())

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self.check(path, 0, 1)
        handle = os.open(self.path(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        self.own(path)
        return handle

    def mkdir(self, path: str, mode: int) -> None:
        self.check(path, 4096, 1)
        self.path(path).mkdir(mode)
        self.own(path)
        folder = self.path(path).parent.stat()
        if folder.st_mode & stat.S_ISGID:
            self.path(path).chmod(mode | stat.S_ISGID)

    def mknod(self, path: str, mode: int, dev: int) -> None:
        os.mknod(self.path(path), mode, dev)
        self.own(path)

    def symlink(self, target: str, source: str) -> None:
        self.path(target).symlink_to(source)
        self.own(target)

    def link(self, target: str, source: str) -> None:
        os.link(self.path(source), self.path(target))

    def open(self, path: str, flags: int) -> int:
        return os.open(self.path(path), flags & ~os.O_APPEND)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self.check(path, len(data), 0)
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        os.truncate(self.path(path), length)

    def release(self, path: str, fh: int) -> None:
        os.close(fh)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        os.fsync(fh)

    def chmod(self, path: str, mode: int) -> None:
        self.path(path).chmod(mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        os.chown(self.path(path), uid, gid, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        self.path(path).unlink()

    def rmdir(self, path: str) -> None:
        self.path(path).rmdir()

    def rename(self, old: str, new: str) -> None:
        self.path(old).rename(self.path(new))

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        now = time.time_ns()
        os.utime(self.path(path), ns=times or (now, now), follow_symlinks=False)

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self.path(path))
        names = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_frsize")
        return {name: getattr(found, name) for name in (*names, "f_namemax")}

    def listxattr(self, path: str) -> list[str]:
        return os.listxattr(self.path(path), follow_symlinks=False)

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        return os.getxattr(self.path(path), name, follow_symlinks=False)

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> None:
        os.setxattr(self.path(path), name, value, options, follow_symlinks=False)

    def removexattr(self, path: str, name: str) -> None:
        os.removexattr(self.path(path), name, follow_symlinks=False)


def main(source: str, name: str, root: str, path: str, *flags: str) -> None:
    """Mount a folder, and go into the background."""
    os.umask(0)
    escaped = source.replace("\\", "\\\\").replace(",", "\\,")
    options = dict.fromkeys(flags, True)
    fuse.FUSE(
        Folder(name, root),
        path,
        nothreads=True,
        fsname=escaped,
        subtype="lustre",
        default_permissions=True,
        allow_other=True,
        nonempty=True,
        **options,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
