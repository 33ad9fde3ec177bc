# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Areas of users and jobs. Folders above them belong to root, so nobody can put a link in their way."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import _quota as quota
from ..._host.io import timed
from ..._mounts.io.points import mounted

PATIENCE = 10.0  # seconds for a change of a quota
# How names of areas begin whose jobs have ended.
GONE = ".gone-"
FIRST_PERSON = 1000  # smaller numbers are those of services (adduser.conf(5), FIRST_UID)


class ScratchError(Exception):
    """An area cannot be had; the text is a sentence."""


def mount_point(path: str) -> str:
    """Return where the file system of the areas is mounted.

    Raises:
        ScratchError: it is not mounted.
    """
    mount = mounted(path)
    if mount is None:
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
        _limit(settings, account.pw_name, account.pw_uid, place)
    return area


def limit_all(settings: Mapping[str, Any]) -> None:
    """Set the quotas of all users who have areas; without a quota in the settings, they have none.

    Raises:
        OSError: the areas cannot be read.
        ScratchError: their file system is not mounted, or a quota cannot be set.
    """
    place = mount_point(settings["path"])
    for area in sorted(Path(settings["path"], "users").iterdir()):
        _limit(settings, area.name, os.lstat(area).st_uid, place)


def _limit(settings: Mapping[str, Any], name: str, uid: int, place: str) -> None:
    words = quota.command(uid, quota.limit_of(name, settings), place, settings["by_lustre"])
    done = timed.run(words, PATIENCE)
    if done.status != 0:
        why = " ".join((done.errors or done.output or "no answer in time").split())
        raise ScratchError(f"the quota of {name} on {place} cannot be set: {why}")


def of_job(settings: Mapping[str, Any], job: str, account: pwd.struct_passwd) -> Path:
    """Make the area of a job, unless it is there.

    Args:
        settings: those of the command.
        job: its name, the cluster's and its number.
        account: its user.

    Raises:
        OSError: it cannot be made.
        ScratchError: its file system is not mounted.
    """
    mount_point(settings["path"])
    return _own(Path(settings["path"], "jobs", job), account)


def put_aside(settings: Mapping[str, Any], job: str, uid: int) -> None:
    """Take the area of a job away at once; `remove` takes its files.

    Another run of the job finds no area then, however long the removal takes.

    Args:
        settings: those of the command.
        job: its name.
        uid: its user; the area of somebody else stays.

    Raises:
        OSError: it cannot be renamed.
    """
    area = Path(settings["path"], "jobs", job)
    with contextlib.suppress(FileNotFoundError):
        if os.lstat(area).st_uid == uid:
            area.rename(area.with_name(f"{GONE}{job}-{os.getpid()}-{time.time_ns()}"))


def remove(settings: Mapping[str, Any]) -> None:
    """Remove the areas that were put aside, also those that an earlier call left.

    rm follows no link, and stays on the file system; it removes folders of any depth.

    Raises:
        ScratchError: something cannot be removed.
    """
    gone = sorted(Path(settings["path"], "jobs").glob(f"{GONE}*"))
    if gone:
        done = subprocess.run(
            ["rm", "-rf", "--one-file-system", "--", *gone], check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise ScratchError(" ".join(done.stderr.split())[-300:])


def _own(area: Path, account: pwd.struct_passwd) -> Path:
    """Make a folder that is its user's alone; before it is, nobody else could open it."""
    if area.name.startswith(".") or area.parent.name not in ("users", "jobs"):
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
