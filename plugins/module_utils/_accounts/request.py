# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and check a list of users, without a machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.gpufarm.cluster.plugins.module_utils._ssh.keys import KeyProblem, parse_keys

# Members of this group are the accounts that were made here; no other account is ever changed.
GROUP = "gpufarm-users"

# POSIX.1-2017, section 3.437, portable user names, as useradd(8) narrows them: lower case, 32 characters.
NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")

# Accounts of persons: login.defs(5), UID_MIN and UID_MAX as Debian and Ubuntu have them.
FIRST_UID, LAST_UID = 1000, 59999

# Members of these are administrators, under other names in other distributions.
ADMINISTRATORS = ("admin", "root", "sudo", "wheel")

SHELL = "/bin/bash"

KEYS = (
    "os_user_name",
    "os_user_ssh_public_key",
    "os_user_add_to_sudoers",
    "os_user_guid",
    "state",
    "groups",
    "shell",
)


class UserProblem(ValueError):
    """The list asks for what cannot be; sentences say what, why, and what to do."""


class User(NamedTuple):
    """A user as asked for.

    Attributes:
        name: of the account.
        keys: lines of authorized_keys.
        sudo: whether all of root's rights are had with sudo.
        uid: number of the account; None for any.
        active: whether the account can be used; one that cannot is locked and keeps its home.
        groups: groups besides the account's own and `GROUP`.
        shell: path of the login shell.
    """

    name: str
    keys: tuple[str, ...] = ()
    sudo: bool = False
    uid: int | None = None
    active: bool = True
    groups: tuple[str, ...] = ()
    shell: str = SHELL


def read_users(
    request: list[dict[str, Any]], allow_options: bool = False, name_suffix: str = ""
) -> list[User]:
    """Return the users of a list, in the words of INDIGO's data type ``tosca.datatypes.indigo.User``.

    Args:
        request: a map for each user, with names of `KEYS`; a value of None is as if it were not there.
        allow_options: whether options may stand before keys.
        name_suffix: what the names of all accounts end with, besides what is asked for.

    Raises:
        UserProblem: something is wrong; all of it is told.
    """
    users, wrong = _read_all(request, allow_options, name_suffix)
    if wrong:
        raise UserProblem(" ".join(wrong))
    return users


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``problems``, what is wrong with a list of users, one sentence each.

    Args:
        settings: the role's variables without ``user_accounts_``.
    """
    users, suffix = settings["users"], settings["name_suffix"]
    if not all(isinstance(user, dict) for user in users):
        return {
            "problems": ["The users are no list of maps; give one map for each, with os_user_name and more."]
        }
    return {"problems": _read_all(users, settings["allow_key_options"], suffix)[1]}


def _read_all(
    request: list[dict[str, Any]], allow_options: bool, name_suffix: str
) -> tuple[list[User], list[str]]:
    users, wrong = [], []
    for number, entry in enumerate(request, 1):
        try:
            users.append(_read(entry, number, allow_options, name_suffix))
        except UserProblem as problem:
            wrong.append(str(problem))
    names = Counter(user.name for user in users)
    wrong += [
        f"The user {name} is in the list twice; give all of its keys in one entry."
        for name, count in names.items()
        if count > 1
    ]
    uids = Counter(user.uid for user in users if user.uid is not None)
    wrong += [
        f"Two users have os_user_guid {uid}; every account needs a number of its own."
        for uid, count in uids.items()
        if count > 1
    ]
    return users, wrong


def _read(entry: dict[str, Any], number: int, allow_options: bool, name_suffix: str) -> User:
    given = {key: value for key, value in entry.items() if value is not None}
    name = str(given.get("os_user_name", ""))
    if not name:
        raise UserProblem(f"User number {number} of the list has no os_user_name.")
    name += name_suffix
    unknown = sorted(set(given) - set(KEYS))
    if unknown:
        raise UserProblem(f"The user {name} has the unknown key '{unknown[0]}'; keys are {', '.join(KEYS)}.")
    if not NAME.fullmatch(name):
        raise UserProblem(
            f"The user name {name[:40]!r} cannot be an account; it must start with a small letter and hold"
            " only small letters, digits, '_' and '-', 32 at most."
        )
    uid = _uid(name, given.get("os_user_guid"))
    state = given.get("state", "present")
    if state not in ("present", "absent"):
        raise UserProblem(f"The user {name} has the state '{state}'; it can be present or absent.")
    if state == "absent":
        return User(name, uid=uid, active=False)
    return User(
        name,
        keys=_keys(name, str(given.get("os_user_ssh_public_key", "")), allow_options),
        sudo=_boolean(name, given.get("os_user_add_to_sudoers", False)),
        uid=uid,
        groups=_groups(name, given.get("groups", [])),
        shell=_shell(name, str(given.get("shell", SHELL))),
    )


def _keys(name: str, text: str, allow_options: bool) -> tuple[str, ...]:
    try:
        keys = parse_keys(text, allow_options)
    except KeyProblem as problem:
        raise UserProblem(f"The SSH key of the user {name} {problem}.") from None
    if not keys:
        raise UserProblem(
            f"The user {name} has no SSH key, and there are no passwords; give os_user_ssh_public_key."
        )
    return tuple(key.line() for key in keys)


def _uid(name: str, value: Any) -> int | None:
    if value is None or value == "":
        return None
    if not str(value).isdecimal() or not FIRST_UID <= int(value) <= LAST_UID:
        raise UserProblem(
            f"The user {name} has os_user_guid '{value}'; numbers of persons' accounts are {FIRST_UID} to"
            f" {LAST_UID}."
        )
    return int(value)


def _boolean(name: str, value: Any) -> bool:
    words = {"true": True, "yes": True, "false": False, "no": False}
    if str(value).lower() not in words:
        raise UserProblem(f"The user {name} has os_user_add_to_sudoers '{value}'; it can be true or false.")
    return words[str(value).lower()]


def _groups(name: str, groups: Any) -> tuple[str, ...]:
    if not isinstance(groups, list):
        raise UserProblem(f"The groups of the user {name} are no list.")
    for group in groups:
        if group in ADMINISTRATORS:
            raise UserProblem(
                f"The user {name} is to be in the group {group}, which is that of administrators; set"
                " os_user_add_to_sudoers instead."
            )
    return tuple(sorted({str(group) for group in groups} - {GROUP}))


def _shell(name: str, shell: str) -> str:
    if not re.fullmatch(r"/[\w./+-]+", shell):
        raise UserProblem(f"The shell '{shell}' of the user {name} is no plain absolute path.")
    return shell
