# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers of accounts, for backups: to the files in a home, its user is a number."""

from __future__ import annotations

import grp
import json
import pwd
import subprocess
from collections.abc import Callable, Mapping
from typing import NamedTuple

from . import accounts
from .accounts import AccountError


class Numbers(NamedTuple):
    """The numbers of one account.

    Attributes:
        uid: its user id.
        gid: the id of the group that has its name.
    """

    uid: int
    gid: int


def dump() -> bytes:
    """Return the numbers of the accounts that the hub has made, as JSON."""
    found = {
        name: Numbers(entry.pw_uid, _number_of_group(name) or entry.pw_uid)._asdict()
        for name, entry in sorted(accounts.made_here().items())
    }
    return (json.dumps(found, indent=1) + "\n").encode()


def load(content: bytes) -> dict[str, Numbers]:
    """Return what `dump` has written.

    Raises:
        ValueError: it is something else.
    """
    try:
        found = {name: Numbers(**entry) for name, entry in json.loads(content).items()}
    except (AttributeError, TypeError) as error:
        raise ValueError(str(error)) from error
    for name, numbers in found.items():
        if not accounts.NAME.fullmatch(name) or not all(
            isinstance(number, int) and accounts.is_person(number) for number in numbers
        ):
            raise ValueError(f"{name!r:.40} has numbers of no person")
    return found


def conflicts(wanted: Mapping[str, Numbers]) -> list[str]:
    """Return one sentence for each number that somebody else has here, and for each account with another."""
    return [
        sentence
        for name, numbers in wanted.items()
        for sentence in (
            _conflict("user", name, numbers.uid, _name_of_user, _number_of_user),
            _conflict("group", name, numbers.gid, _name_of_group, _number_of_group),
        )
        if sentence
    ]


def _conflict(
    kind: str,
    name: str,
    wanted: int,
    name_of: Callable[[int], str | None],
    number_of: Callable[[str], int | None],
) -> str:
    here = number_of(name)
    if here is not None and here != wanted:
        return f"The {kind} {name} had the number {wanted} and has {here} here."
    other = name_of(wanted)
    if other not in (None, name):
        return f"The {kind} {name} had the number {wanted}, which is that of the {kind} {other} here."
    return ""


def restore(wanted: Mapping[str, Numbers]) -> None:
    """Make the accounts that are not there, with their numbers. Interrupted, it can be done again.

    Args:
        wanted: numbers without `conflicts`.

    Raises:
        AccountError: an account could not be made.
    """
    for name, numbers in wanted.items():
        if _number_of_user(name) is not None:
            continue
        if _number_of_group(name) is None:
            made = subprocess.run(
                ["/usr/sbin/groupadd", "--gid", str(numbers.gid), "--", name],
                check=False,
                capture_output=True,
                text=True,
            )
            if made.returncode:
                raise AccountError(f"The group {name} could not be made: {made.stderr.strip()}")
        accounts.make(name, numbers.uid, name)


def _name_of_user(number: int) -> str | None:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return None


def _number_of_user(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _name_of_group(number: int) -> str | None:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return None


def _number_of_group(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None
