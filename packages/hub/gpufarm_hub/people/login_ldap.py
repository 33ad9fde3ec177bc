# SPDX-License-Identifier: GPL-3.0-or-later
"""Login by a directory (LDAP)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from traitlets import Instance, Unicode

from . import accounts
from .directory import Directory, DirectoryError, Entry, from_settings
from .login import LoginDownError, PasswordLogin, Person, apply_groups, forbidden


def configure(c: Any, login: dict[str, Any], persons_file: str) -> None:
    """Configure the login.

    Args:
        c: the hub's configuration object.
        login: the settings' part about it.
        persons_file: the file that remembers whose a user name is.
    """
    c.JupyterHub.authenticator_class = LdapLogin
    auth = c.LdapLogin
    auth.directory = from_settings(login)
    auth.issuer = f"ldap:{login['user_base']}"
    auth.persons_file = persons_file
    apply_groups(auth, login["groups"], login["admin_groups"])


class LdapLogin(PasswordLogin):
    """Passwords are checked by a directory, which also tells the groups."""

    directory = Instance(Directory, help="The directory.").tag(config=True)
    issuer = Unicode(help="Issuer of identifiers of persons.").tag(config=True)
    persons_file = Unicode(help="The file that remembers whose a user name is.").tag(config=True)
    source = "The directory that knows the users"
    whom_to_ask = "the administrators of your directory"

    def identify(self, name: str, password: str) -> Person | None:
        """Find the user, then log in to the directory with their password."""
        try:
            entry = self.directory.find(name)
            if entry is None or not self.directory.accepts(entry, password):
                return None
        except DirectoryError as error:
            raise LoginDownError(str(error)) from error
        return self._person(entry)

    def look_up(self, name: str) -> Person | None:
        """Ask the directory for the user and their groups."""
        try:
            entry = self.directory.find(name)
        except DirectoryError as error:
            raise LoginDownError(str(error)) from error
        return self._person(entry) if entry else None

    async def check_allowed(self, username: str, auth_model: dict[str, Any] | None) -> bool:
        """Tell whether the user may come in, and bind the name to the person at the first time."""
        await super().check_allowed(username, auth_model)
        if auth_model is not None:
            state = auth_model["auth_state"]
            with forbidden():
                accounts.check_name(username, state["uid"])
                accounts.Persons(Path(self.persons_file)).bind(username, self.issuer, state["identifier"])
        return True

    @staticmethod
    def _person(entry: Entry) -> Person:
        return Person(entry.name, entry.groups, entry.uid, entry.identifier)
