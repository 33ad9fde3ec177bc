"""The people of the bench: two who may use the service, one who also administers it, one who may not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import secrets
import uuid
from pathlib import Path
from typing import TypedDict

from lab.system import write_atomically

PEOPLE = {
    "alice": ("Alice", "Rossi", ["ml-infn-users"]),
    "carol": ("Carol", "Neri", ["ml-infn-users"]),
    "bob": ("Bob", "Bianchi", ["ml-infn-users", "ml-infn"]),
    "mallory": ("Mallory", "Verdi", ["cms"]),
}


class Login(TypedDict):
    """Credentials of a person, and the groups that decide their rights."""

    password: str
    groups: list[str]


class User(Login):
    """A user as the provider's program reads it."""

    name: str
    sub: str
    given_name: str
    family_name: str
    email: str


def ensure_logins(users_file: Path) -> dict[str, Login]:
    """Read the users' random passwords, or make them.

    Args:
        users_file: {name: {"password", "groups"}} as JSON, mode 0600.

    Returns:
        The same, by name.
    """
    if not users_file.exists():
        logins: dict[str, Login] = {
            name: {"password": secrets.token_urlsafe(9), "groups": groups}
            for name, (_, _, groups) in PEOPLE.items()
        }
        write_atomically(users_file, json.dumps(logins, indent=2) + "\n", 0o600)
    return json.loads(users_file.read_text())


def users_of(logins: dict[str, Login]) -> list[User]:
    """Add to the logins what the provider's claims need. The subject stays the same for a name."""
    return [
        {
            **login,
            "name": name,
            "sub": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.example.org")),
            "given_name": PEOPLE[name][0],
            "family_name": PEOPLE[name][1],
            "email": f"{name}@example.org",
        }
        for name, login in logins.items()
    ]
