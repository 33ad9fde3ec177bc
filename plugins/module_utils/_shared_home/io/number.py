# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User ids of accounts that hubs make: the same on all machines that share homes, and never reused.

Each machine alone would take its own next free number, and so give the home of one user to another. Shared
data decides: the owner of the home that is there, and notes beside the homes. A note is a
symbolic link, named after the number and leading to the user's name and whose it is. It is there or not, also
on network file systems, so of two machines that give a number at once one sees the other's.
"""

from __future__ import annotations

import os
import pwd
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..options import NAME
from . import make
from .make import HomeError

NOTES = ".gpufarm-numbers"
# Within what is for users (Debian Policy Manual, section 9.2.2: 1000 to 59999), above what useradd(8) gives
# to the first accounts of each machine. A search begins where the name says, so that few are in its way.
FIRST, COUNT = 10000, 50000


def number_of(name: str, person: str, settings: Mapping[str, Any]) -> int:
    """Return the number for a new account, and note it.

    Args:
        name: of the account.
        person: whose it is, as the hubs of all machines call them.
        settings: those of the command gpufarm-home.

    Raises:
        HomeError: there is none, or the name is another person's.
        OSError: the folder of homes cannot be read or written.
    """
    if not NAME.fullmatch(name):
        raise HomeError(f"{name!r} is no name of an account.")
    homes = Path(settings["path"])
    os.close(make.open_parent(str(homes)))  # root's alone, so nobody puts links in the way
    notes = _notes(homes / NOTES)
    noted = _noted(name, notes)
    if noted is not None:
        _check(homes / NOTES / str(noted), name, person, notes[noted])
        return noted
    owner = _owner(homes / name)
    if not settings["create"]:  # nothing can be written either
        if owner is None:
            raise HomeError(
                f"{homes / name} is not there, and homes are not made here: ask who runs the server."
            )
        return owner
    (homes / NOTES).mkdir(mode=0o755, exist_ok=True)
    if owner is not None:
        _write(homes / NOTES / str(owner), name, person)
        return owner
    there = (home for home in homes.iterdir() if not home.name.startswith(make.UNFINISHED))
    taken = {*notes, *(home.lstat().st_uid for home in there), *(one.pw_uid for one in pwd.getpwall())}
    begin = zlib.crc32(name.encode())
    for step in range(COUNT):
        number = FIRST + (begin + step) % COUNT
        if number not in taken and _is_given(homes / NOTES / str(number), name, person):
            return number
    raise HomeError(f"All numbers of users from {FIRST} to {FIRST + COUNT - 1} are taken.")


def check(account: pwd.struct_passwd, person: str, settings: Mapping[str, Any]) -> None:
    """Refuse an account whose name or number is noted as another person's.

    Args:
        account: of this machine.
        person: whose it is, as the hubs of all machines call them.
        settings: those of the command gpufarm-home.

    Raises:
        HomeError: with the note.
        OSError: the notes cannot be read.
    """
    folder = Path(settings["path"], NOTES)
    note = folder / str(account.pw_uid)
    if note.is_symlink():
        _check(note, account.pw_name, person, str(note.readlink()))
        return
    noted = _noted(account.pw_name, _notes(folder))
    if noted is not None:
        _refuse(folder / str(noted), account.pw_name)


def write_down(account: pwd.struct_passwd, person: str, settings: Mapping[str, Any]) -> None:
    """Note whose an account is that has a home; arguments and errors are those of `check`."""
    if settings["create"]:
        folder = Path(settings["path"], NOTES)
        folder.mkdir(mode=0o755, exist_ok=True)
        _write(folder / str(account.pw_uid), account.pw_name, person)


def _notes(folder: Path) -> dict[int, str]:
    try:
        return {int(note.name): str(note.readlink()) for note in folder.iterdir() if note.name.isdecimal()}
    except FileNotFoundError:
        return {}


def _noted(name: str, notes: Mapping[int, str]) -> int | None:
    return min((number for number, told in notes.items() if told.partition(":")[0] == name), default=None)


def _check(note: Path, name: str, person: str, told: str) -> None:
    if told != f"{name}:{person}":
        _refuse(note, name)


def _refuse(note: Path, name: str) -> NoReturn:
    raise HomeError(
        f"{note} says that the user id {note.name} belongs to another person or name than that of {name}"
        " here: ask the administrator whose files these are."
    )


def _is_given(note: Path, name: str, person: str) -> bool:
    """Return whether the number is the person's; another machine may have been quicker."""
    told = f"{name}:{person}"
    try:
        note.symlink_to(told)
    except FileExistsError:
        return str(note.readlink()) == told
    return True


def _write(note: Path, name: str, person: str) -> None:
    if not _is_given(note, name, person):
        _refuse(note, name)


def _owner(home: Path) -> int | None:
    try:
        status = home.lstat()
    except FileNotFoundError:
        return None
    number = status.st_uid
    if not stat.S_ISDIR(status.st_mode) or number < make.first_person() or number in make.NOBODY:
        raise HomeError(f"{home} is no home of a user: move it away.")
    return number
