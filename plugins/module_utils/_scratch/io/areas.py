# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Areas of users and jobs. Folders above them belong to root, so nobody can put a link in their way."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import _quota as quota
from ..._host.io import timed
from ..._mounts.table import mount_of, parse

PATIENCE = 10.0  # seconds for a change of a quota
FIRST_PERSON = 1000  # smaller numbers are those of services (adduser.conf(5), FIRST_UID)


class ScratchError(Exception):
    """An area cannot be had; the text is a sentence."""


def mount_point(path: str) -> str:
    """Return where the file system of the areas is mounted.

    Raises:
        ScratchError: it is not mounted.
    """
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    mount = mount_of(path, parse(table))
    if mount is None or mount.path == "/":
        raise ScratchError(f"{path} is not mounted")
    return mount.path


def of_user(settings: Mapping[str, Any], account: pwd.struct_passwd) -> Path:
    """Make the area of a user, unless it is there.

    Raises:
        OSError: it cannot be made.
        ScratchError: its file system is not mounted, or the quota cannot be set.
    """
    place = mount_point(settings["path"])
    area = _own(Path(settings["path"], "users", account.pw_name), account)
    if settings["limits"]:
        limit = quota.limit_of(account.pw_name, settings)
        words = quota.command(account.pw_uid, limit, place, settings["by_lustre"])
        done = timed.run(words, PATIENCE)
        if done.status != 0:
            why = " ".join((done.errors or done.output or "no answer in time").split())
            raise ScratchError(f"the quota of {account.pw_name} on {place} cannot be set: {why}")
    return area


def of_job(settings: Mapping[str, Any], job: int, account: pwd.struct_passwd) -> Path:
    """Make the area of a job, unless it is there.

    Raises:
        OSError: it cannot be made.
        ScratchError: its file system is not mounted.
    """
    mount_point(settings["path"])
    return _own(Path(settings["path"], "jobs", str(job)), account)


def remove_job(settings: Mapping[str, Any], job: int) -> None:
    """Remove the area of a job with all that is in it. Links are removed, and not followed.

    Raises:
        OSError: it cannot be removed.
    """
    area = Path(settings["path"], "jobs", str(job))
    if area.is_dir() and not area.is_symlink():
        shutil.rmtree(area)


def _own(area: Path, account: pwd.struct_passwd) -> Path:
    """Make a folder that is its user's alone; before it is, nobody else could open it."""
    if area.name in ("", ".", "..") or area.parent.name not in ("users", "jobs"):
        raise ScratchError(f"{area} is no place for an area")
    try:
        area.mkdir(mode=0o700)
    except FileExistsError:
        found = os.lstat(area)
        if not area.is_dir() or area.is_symlink() or found.st_uid not in (0, account.pw_uid):
            raise ScratchError(
                f"{area} belongs to somebody else; an administrator must move it away"
            ) from None
    os.chown(area, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return area
