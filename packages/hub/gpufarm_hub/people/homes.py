# SPDX-License-Identifier: GPL-3.0-or-later
"""Homes that the role shared_home keeps: on a file system of the site, with a quota for each user."""

from __future__ import annotations

import subprocess
from pathlib import Path

# There where the role shared_home keeps the homes. It makes a user's home unless it is there, sets the quota,
# and gives up by itself when the file system hangs; what fails it says in one sentence.
COMMAND = Path("/usr/local/sbin/gpufarm-home")
TIMEOUT = 60  # seconds; more than the command's own patience


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
