# SPDX-License-Identifier: GPL-3.0-or-later
"""Homes: whose they are, and those that the role shared_home keeps on a file system of the site.

The owner of a file is a number. A home that was put back on another machine may have that of somebody else
there. Nothing here ever gives a home to anybody: that is for an administrator to decide.
"""

from __future__ import annotations

import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gpufarm_hub.sharing import bounded

# There where the role shared_home keeps the homes. It makes a user's home unless it is there, sets the quota,
# and gives up by itself when the file system hangs; what fails it says in one sentence.
COMMAND = Path("/usr/local/sbin/gpufarm-home")
TIMEOUT = 60  # seconds; more than the command's own patience

HOMES = Path("/home")  # where useradd(8) makes homes


Answer = TypeVar("Answer")


class HomeError(Exception):
    """The user's home cannot be used; the text is for the user."""


def are_kept() -> bool:
    """Tell whether homes are made by the command, and not together with the account."""
    return COMMAND.exists()


def ensure(name: str, person: str) -> None:
    """Have the home of an account there, with its quota; nothing where nobody keeps homes.

    Args:
        name: the account's.
        person: whose it is (`Persons.mark`).

    Raises:
        HomeError: it cannot be used.
    """
    if are_kept():
        _ask(name, f"--person={person}")


def check_owner(account: pwd.struct_passwd) -> None:
    """Refuse a home of somebody else; of one that cannot be looked at, the kernel knows the owner.

    Raises:
        HomeError: with the owner, and what an administrator does about it.
    """
    home = Path(account.pw_dir)
    owner = _owner(home)
    if owner is not None and owner != account.pw_uid:
        raise HomeError(
            f"Your home {home} belongs to {_called(owner)}, and your account here has the number "
            f"{account.pw_uid}. Ask the administrator of this service to restore the accounts from a backup "
            "of the hub, or to find out whose files these are."
        )


def check_absent(name: str) -> None:
    """Refuse to make an account whose home is there before it: the new number would not be the owner's.

    Raises:
        HomeError: as `check_owner`.
    """
    home = HOMES / name
    owner = _owner(home)
    if owner is not None:
        raise HomeError(
            f"There is a home {home} of {_called(owner)} already, but no account {name}. Ask the "
            "administrator of this service to restore the accounts from a backup of the hub, or to move the "
            "folder away."
        )


def owners() -> set[int]:
    """Return the numbers of those whom homes belong to.

    Raises:
        HomeError: their file system does not answer.
    """
    return {number for number in _ask_system(HOMES, _owners) or () if number is not None}


def _owner(home: Path) -> int | None:
    return _ask_system(home, lambda: home.stat().st_uid)


def _owners() -> list[int | None]:
    return [_number(home) for home in HOMES.iterdir()]


def _number(home: Path) -> int | None:
    try:
        return home.stat().st_uid
    except OSError:
        return None


def _ask_system(path: Path, question: Callable[[], Answer]) -> Answer | None:
    """Return the answer of a file system; None for what is not there or is closed to root."""
    try:
        return bounded.ask(("home", path), question, TIMEOUT)
    except TimeoutError as error:
        raise HomeError(
            f"The file system of {path} does not answer. Try again in some minutes; if it lasts, tell the "
            "administrator of this service."
        ) from error
    except OSError:
        return None


def _called(number: int) -> str:
    try:
        return f"the account {pwd.getpwuid(number).pw_name} (number {number})"
    except KeyError:
        return f"the number {number}, which no account has here"


def number(name: str, person: str) -> int:
    """Return the user id for a new account, which is the same on all machines that share the homes.

    Args:
        name: the account's.
        person: whose it is (`Persons.mark`).

    Raises:
        HomeError: there is none.
    """
    return int(_ask(f"--number={name}", f"--person={person}"))


def _ask(*arguments: str) -> str:
    try:
        done = subprocess.run(
            [COMMAND, *arguments], check=False, capture_output=True, text=True, timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HomeError(f"Your home could not be looked for: {error}.") from error
    if done.returncode:
        said = " ".join(done.stdout.split()) or "the journal of the hub has the reason."
        raise HomeError(f"Your home cannot be used: {said}")
    return done.stdout
