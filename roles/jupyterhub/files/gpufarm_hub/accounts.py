# SPDX-License-Identifier: GPL-3.0-or-later
"""The system accounts that notebooks run under, and the persons they belong to."""

from __future__ import annotations

import grp
import pwd
import re
import subprocess
from pathlib import Path

from .store import JsonStore

# Members of this group are the accounts that were made here; no other account is ever used.
GROUP = "jupyterhub-users"

# POSIX portable names, lower case, at most 32 characters (useradd(8)).
NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


class AccountError(Exception):
    """This person cannot have an account here; the text is for the user."""


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _is_ours(name: str) -> bool:
    try:
        return name in grp.getgrnam(GROUP).gr_mem
    except KeyError:
        return False


def check_name(name: str) -> None:
    """Refuse names that cannot be an account, or that are an account of the machine itself.

    Raises:
        AccountError: with the reason.
    """
    if not NAME.fullmatch(name):
        raise AccountError(
            f"The user name {name!r:.40} cannot be used on this machine: it must start with a small letter "
            "and hold only small letters, digits, '_', '.' and '-'. "
            "Ask the administrator of your identity provider."
        )
    if _exists(name) and not _is_ours(name):
        raise AccountError(
            f"The user name {name} belongs to an account of this machine itself, so it cannot be used here. "
            "Ask the administrator of this service."
        )


def ensure(name: str) -> None:
    """Make the account, locked for any other way of logging in, unless it is there.

    Raises:
        AccountError: the name is refused.
        subprocess.CalledProcessError: the account could not be made.
    """
    check_name(name)
    if _exists(name):
        return
    subprocess.run(
        [
            "/usr/sbin/useradd",
            "--create-home",
            "--user-group",
            "--groups", GROUP,
            # A shell would open SSH, and thereby a way around the limits of the notebook.
            "--shell", "/usr/sbin/nologin",
            "--key", "HOME_MODE=0700",
            "--comment", "JupyterHub user",
            "--", name,
        ],
        check=True,
    )  # fmt: skip


class Persons:
    """Remembers which person a user name belongs to.

    OpenID Connect Core 1.0, section 5.7: only issuer and subject together identify a person; a name such as
    ``preferred_username`` may be given to somebody else later, who must not inherit the first one's files.

    Args:
        path: the file they are kept in.
    """

    def __init__(self, path: Path) -> None:
        self._store = JsonStore(path)

    def bind(self, name: str, issuer: str, subject: str) -> None:
        """Bind a name to a person at the first login.

        Raises:
            AccountError: the name is bound to somebody else.
        """
        with self._store.change() as content:
            person = {"issuer": issuer, "subject": subject}
            if content.setdefault(name, person) != person:
                raise AccountError(
                    f"The user name {name} belongs to another person on this machine. "
                    "Ask the administrator of this service."
                )
