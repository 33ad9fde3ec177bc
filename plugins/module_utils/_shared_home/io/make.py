# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the home of a user, on first use, or say why there is none. It changes no home that is there.

The folder that homes are in is root's, so no user can put a symbolic link or another folder in the place of a
home. A home is filled under another name and gets its own with rename(2), so there is none that is half made.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..._mounts import table as mount_table
from ..options import NAME

SKELETON = "/etc/skel"
LOGIN_DEFS = "/etc/login.defs"
FIRST_PERSON = 1000  # Debian Policy Manual, section 9.2.2: accounts below belong to the system
NOBODY = (65534, 65535)  # the same section
UNFINISHED = ".gpufarm-home-"


class HomeError(Exception):
    """There is no home for this user; the text is one sentence for users and administrators."""


def _refuse(text: str, *values: Any) -> NoReturn:
    raise HomeError(text % values)


def first_person(login_defs: str | Path = LOGIN_DEFS) -> int:
    """Return the smallest number of a person's account (login.defs(5), UID_MIN)."""
    try:
        lines = Path(login_defs).read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    values = [line.split() for line in lines]
    found = [fields[1] for fields in values if len(fields) > 1 and fields[0] == "UID_MIN"]
    return int(found[-1]) if found and found[-1].isdecimal() else FIRST_PERSON


def is_ours(account: pwd.struct_passwd, path: str) -> bool:
    """Return whether an account is a person's whose home lies directly in the folder of homes."""
    folder, _slash, name = account.pw_dir.rpartition("/")
    person = account.pw_uid >= first_person() and account.pw_uid not in NOBODY
    return person and folder == path and bool(NAME.fullmatch(name))


def place_of(settings: Mapping[str, Any], mounts: Mapping[str, mount_table.Mount]) -> mount_table.Mount:
    """Return the mount that homes lie on.

    Args:
        settings: those of the command.
        mounts: those of the machine.

    Raises:
        HomeError: it is not mounted, and what would be written would be hidden later.
    """
    path, types = settings["path"], settings["types"]
    mount = mount_table.mount_of(path, mounts)
    if mount is None or (settings["mounted"] and mount.path != path) or (types and mount.kind not in types):
        _refuse(
            "%s is not mounted, so nobody's home is there: look at 'findmnt %s' and the journal of the"
            " machine.",
            path,
            path,
        )
    if not mount.writable:
        _refuse("%s is mounted read-only, so no home can be used: look at the journal of the machine.", path)
    return mount


def open_parent(path: str) -> int:
    """Open the folder that homes are in, if users cannot change it.

    Raises:
        HomeError: it is not root's alone.
        OSError: it cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(handle)
    if status.st_uid != 0 or status.st_mode & 0o022:
        os.close(handle)
        _refuse(
            "%s can be written by others than root, who could put anything in the place of a home: 'chown"
            " root %s' and 'chmod go-w %s' mend it.",
            path,
            path,
            path,
        )
    return handle


def ensure(account: pwd.struct_passwd, settings: Mapping[str, Any], skeleton: str = SKELETON) -> bool:
    """Make the home of an account unless it is there. Return whether it was made.

    Args:
        account: one that `is_ours`.
        settings: those of the command.
        skeleton: folder that a new home is a copy of.

    Raises:
        HomeError: what is there is not the user's home, or it cannot be made.
        OSError: the folder of homes cannot be read.
    """
    parent = open_parent(settings["path"])
    try:
        name = Path(account.pw_dir).name
        if _check(account, name, parent):
            return False
        if not settings["create"]:
            _refuse("%s is not there, and homes are not made here: ask who runs the server.", account.pw_dir)
        _refuse_shared_number(account, parent)
        try:
            _make(account, settings["path"], skeleton)
        except OSError as error:
            # Another machine may have been quicker, which file systems over SSH report as a missing right.
            if _check(account, name, parent):
                return False
            _explain(account.pw_dir, error)
        return True
    finally:
        os.close(parent)


def _check(account: pwd.struct_passwd, name: str, parent: int) -> bool:
    """Return whether the home is there.

    Raises:
        HomeError: something else is.
    """
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no folder"
        _refuse("%s is %s, and a home has to be a folder: move it away.", account.pw_dir, kind)
    if status.st_uid != account.pw_uid:
        _refuse(
            "%s belongs to the user id %d, and %s has %d: give the account the same number on all machines,"
            " or ask whose files these are.",
            account.pw_dir,
            status.st_uid,
            account.pw_name,
            account.pw_uid,
        )
    return True


def _refuse_shared_number(account: pwd.struct_passwd, parent: int) -> None:
    """Refuse a new home for a number that has a home already, under the name of another machine's account.

    Raises:
        HomeError: with both names.
    """
    with os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(UNFINISHED):
                continue
            if entry.stat(follow_symlinks=False).st_uid == account.pw_uid:
                _refuse(
                    "%s has the user id %d, to which %s/%s belongs: give each user a number of their own, the"
                    " same on all machines.",
                    account.pw_name,
                    account.pw_uid,
                    Path(account.pw_dir).parent,
                    entry.name,
                )


def _make(account: pwd.struct_passwd, path: str, skeleton: str) -> None:
    new = tempfile.mkdtemp(prefix=UNFINISHED, dir=path)
    try:
        if Path(skeleton).is_dir():
            shutil.copytree(skeleton, new, symlinks=True, dirs_exist_ok=True)
        for folder, folders, files in os.walk(new):
            for name in (*folders, *files):
                os.chown(Path(folder, name), account.pw_uid, account.pw_gid, follow_symlinks=False)
        Path(new).chmod(0o700)
        os.chown(new, account.pw_uid, account.pw_gid)
        # Another machine may have been quicker; a home that holds something is never replaced.
        Path(new).rename(account.pw_dir)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _explain(home: str, error: OSError) -> NoReturn:
    """Tell why a home could not be made.

    Raises:
        HomeError: always.
    """
    if error.errno in (errno.EPERM, errno.EACCES):
        _refuse(
            "%s cannot be made, as root of this machine has no rights on the file system: let the server"
            " export it to this machine with no_root_squash, or make homes on the server and set"
            " shared_home_create to false.",
            home,
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        _refuse("%s cannot be made: the file system is full.", home)
    _refuse("%s cannot be made: %s.", home, os.strerror(error.errno or 0))


def try_out(settings: Mapping[str, Any]) -> None:
    """Make a folder where homes are, give it to nobody, and remove it.

    Raises:
        HomeError: it cannot be done, and no home could be made.
        OSError: the folder of homes cannot be read.
    """
    os.close(open_parent(settings["path"]))
    if not settings["create"]:
        return
    try:
        new = tempfile.mkdtemp(prefix=UNFINISHED, dir=settings["path"])
        try:
            os.chown(new, NOBODY[0], NOBODY[0])
        finally:
            Path(new).rmdir()
    except OSError as error:
        _explain(f"A home in {settings['path']}", error)


def accounts_of(path: str) -> list[pwd.struct_passwd]:
    """Return the accounts of this machine whose homes are there and theirs.

    Args:
        path: of the folder of homes, in which they have their users' names.

    Raises:
        OSError: it cannot be read.
    """
    with os.scandir(path) as entries:
        owners = {entry.name: entry.stat(follow_symlinks=False).st_uid for entry in entries}
    accounts = []
    for name, owner in sorted(owners.items()):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue  # of an account that only another machine has
        if is_ours(account, path) and account.pw_uid == owner:
            accounts.append(account)
    return accounts
