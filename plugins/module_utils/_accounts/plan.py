# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the changes that make the accounts of a machine those of a list."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.request import (
    FIRST_UID,
    GROUP,
    LAST_UID,
    User,
    UserProblem,
)

# The accounts that a JupyterHub of this collection makes for its users.
HUB_GROUP = "jupyterhub-users"

# Changes of an account. With "*" in place of a password none is right, and the account is not
# locked (shadow(5)); sshd(8) lets no one in whose password starts with "!" or whose account has expired.
KEYS_ONLY, LOCKED, CHANGED = "keys only", "locked", "changed by hand"


class Account(NamedTuple):
    """An account of the machine.

    Attributes:
        uid: its number.
        shell: path of its login shell.
        groups: groups besides its own, sorted.
        access: `KEYS_ONLY`, `LOCKED` or `CHANGED`.
    """

    uid: int | None
    shell: str
    groups: tuple[str, ...]
    access: str

    def shown(self) -> dict[str, Any]:
        """Return it for a diff."""
        return {
            "uid": self.uid or "next free",
            "shell": self.shell,
            "groups": [group for group in self.groups if group != GROUP],
            "access": self.access,
        }


class Machine(NamedTuple):
    """Accounts and groups of the machine.

    Attributes:
        accounts: local accounts by name.
        groups: names of local groups.
        elsewhere: names asked for that a directory service knows, and the machine itself does not.
        homes: names asked for that have no account, and whose home folder is there.
        shells: paths asked for that are programs.
        keys: lines of the files of keys, by user name.
        sudoers: the file with the rights of sudo; None without one.
        operators: names of the accounts behind this very run.
        homes_on_use: whether homes are made at the first login (role shared_home), and not with the account.
        numbers: names of accounts by numbers asked for that a directory service knows, and the machine not.
    """

    accounts: dict[str, Account]
    groups: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    homes: frozenset[str] = frozenset()
    shells: frozenset[str] = frozenset()
    keys: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    sudoers: str | None = None
    operators: frozenset[str] = frozenset()
    homes_on_use: bool = False
    numbers: Mapping[int, str] = MappingProxyType({})

    def ours(self) -> dict[str, Account]:
        """Return the accounts that were made by an earlier run."""
        return {name: account for name, account in self.accounts.items() if GROUP in account.groups}


class Plan(NamedTuple):
    """The wanted accounts, and the commands that make them.

    Attributes:
        accounts: all that are ours, by name.
        keys: lines of the files of keys, by user name.
        sudoers: the file with the rights of sudo; None for none.
        commands: in their order.
        locked: names of the accounts that cannot be used.
    """

    accounts: dict[str, Account]
    keys: dict[str, tuple[str, ...]]
    sudoers: str | None
    commands: list[list[str]]
    locked: list[str]


def read_accounts(passwd: str, group: str, shadow: str) -> tuple[dict[str, Account], frozenset[str]]:
    """Return the local accounts, and the names of the local groups.

    Args:
        passwd: content of ``/etc/passwd`` (passwd(5)).
        group: content of ``/etc/group`` (group(5)).
        shadow: content of ``/etc/shadow`` (shadow(5)): name, password, five fields about its age, then the
            day on which the account expires, counted from 1970-01-01.
    """
    groups = {fields[0]: fields[3].split(",") for fields in _table(group, 4)}
    secrets = {fields[0]: (fields[1], fields[7]) for fields in _table(shadow, 9)}
    accounts = {}
    for fields in _table(passwd, 7):
        name, password, expires = fields[0], *secrets.get(fields[0], ("", ""))
        access = CHANGED
        if (password, expires) == ("*", ""):
            access = KEYS_ONLY
        elif password.startswith("!") and expires == "1":
            access = LOCKED
        members = tuple(sorted(other for other, names in groups.items() if name in names))
        accounts[name] = Account(int(fields[2]), fields[6], members, access)
    return accounts, frozenset(groups)


def plan(users: list[User], machine: Machine) -> Plan:
    """Return what there shall be, and the commands that lead there.

    Accounts of earlier runs that are not in the list are locked, and keep their homes.

    Raises:
        UserProblem: the machine cannot have the list.
    """
    wanted = {user.name: user for user in users if user.active}
    ours = machine.ours()
    for user in users:
        _refuse(user, machine)
    accounts = {
        name: Account(account.uid, account.shell, (GROUP,), LOCKED)
        for name, account in ours.items()
        if name not in wanted
    }
    for name, user in wanted.items():
        uid = ours[name].uid if name in ours else user.uid
        accounts[name] = Account(uid, user.shell, tuple(sorted({GROUP, *user.groups})), KEYS_ONLY)
    sudoers = _sudoers([name for name, user in wanted.items() if user.sudo])
    _refuse_to_lock_out(machine, accounts, wanted)
    commands = [] if GROUP in machine.groups or not accounts else [["groupadd", "--system", GROUP]]
    for name, account in sorted(accounts.items()):
        commands += _commands(name, ours.get(name), account, machine.homes_on_use)
    return Plan(
        accounts,
        {name: user.keys for name, user in wanted.items()},
        sudoers,
        commands,
        sorted(name for name, account in accounts.items() if account.access == LOCKED),
    )


def shown(
    accounts: dict[str, Account], keys: Mapping[str, tuple[str, ...]], sudoers: str | None
) -> dict[str, Any]:
    """Return a state for a diff: accounts, keys, and the lines of the file with the rights of sudo."""
    return {
        "accounts": {name: account.shown() for name, account in accounts.items()},
        "keys": {name: list(lines) for name, lines in keys.items()},
        "sudoers": (sudoers or "").splitlines(),
    }


def _table(text: str, width: int) -> list[list[str]]:
    # Not splitlines(): it cuts at characters that persons can have in their names.
    rows = [line.split(":") for line in text.split("\n")]
    return [row for row in rows if len(row) == width]


def _refuse(user: User, machine: Machine) -> None:
    """Refuse what the machine cannot have.

    Raises:
        UserProblem: with the reason.
    """
    name, account = user.name, machine.accounts.get(user.name)
    if account is not None and GROUP not in account.groups:
        _refuse_foreign(name, account)
    if name in machine.elsewhere:
        raise UserProblem(
            f"The account {name} comes from a directory service, which decides about its keys and rights;"
            " take it out of the list, or choose another name."
        )
    if account is not None and user.uid not in (None, account.uid):
        raise UserProblem(
            f"The account {name} has the number {account.uid}, so it cannot have {user.uid}, or its files"
            f" would belong to nobody; give it os_user_guid {account.uid} or none."
        )
    if not user.active:
        return
    if account is None:
        _refuse_new(user, machine)
    missing = sorted(set(user.groups) - machine.groups)
    if missing:
        raise UserProblem(
            f"The group {missing[0]}, which the user {name} is to be in, is not on the machine; make it"
            " first."
        )
    if user.shell not in machine.shells:
        raise UserProblem(
            f"The shell {user.shell} of the user {name} is not on the machine; install it or choose another."
        )


def _refuse_foreign(name: str, account: Account) -> None:
    if HUB_GROUP in account.groups:
        raise UserProblem(
            f"The account {name} belongs to a user of the JupyterHub, who need not be the person meant here;"
            " choose another name."
        )
    if account.uid is None or not FIRST_UID <= account.uid <= LAST_UID:
        raise UserProblem(f"The name {name} is that of an account of the system itself; choose another.")
    raise UserProblem(
        f"The account {name} was made by somebody else; choose another, or hand it over with: gpasswd -a"
        f" {name} {GROUP}"
    )


def _refuse_new(user: User, machine: Machine) -> None:
    if user.name in machine.groups:
        raise UserProblem(
            f"The name {user.name} is that of a group, so an account cannot have a group of its own; choose"
            " another."
        )
    if user.name in machine.homes:
        raise UserProblem(
            f"The folder /home/{user.name} is there already and would be taken over by a new account; move"
            " it away, or choose another name."
        )
    owners = {account.uid: name for name, account in machine.accounts.items()}
    owners |= {number: f"{name} in a directory service" for number, name in machine.numbers.items()}
    if user.uid in owners and user.uid is not None:
        raise UserProblem(
            f"The user {user.name} is to have os_user_guid {user.uid}, which is that of {owners[user.uid]};"
            " choose another."
        )


def _refuse_to_lock_out(machine: Machine, accounts: dict[str, Account], wanted: dict[str, User]) -> None:
    for name in sorted(machine.operators & set(accounts)):
        had_sudo = _sudoers_line(name) in (machine.sudoers or "").splitlines()
        if name not in wanted or (had_sudo and not wanted[name].sudo):
            raise UserProblem(
                f"The account {name} is the one that this run works with, and would lose its rights; run it"
                " as somebody else."
            )


def _sudoers_line(name: str) -> str:
    return f"{name} ALL=(ALL:ALL) NOPASSWD: ALL"


def _sudoers(names: list[str]) -> str | None:
    """Return the file with the rights of sudo (sudoers(5)); the accounts have no passwords to ask for."""
    if not names:
        return None
    lines = ["# Ansible managed", *(_sudoers_line(name) for name in sorted(names))]
    return "\n".join(lines) + "\n"


def _commands(name: str, before: Account | None, after: Account, homes_on_use: bool) -> list[list[str]]:
    """Return the calls of useradd(8) or usermod(8) for one account."""
    groups = ",".join(after.groups)
    if before is None:
        number = [] if after.uid is None else ["--uid", str(after.uid)]
        home = "--no-create-home" if homes_on_use else "--create-home"
        return [
            [
                "useradd", home, "--user-group", "--key", "HOME_MODE=0700", *number,
                "--groups", groups, "--shell", after.shell, "--password", "*", "--", name,
            ]
        ]  # fmt: skip
    if before == after:
        return []
    if after.access == LOCKED:
        return [["usermod", "--lock", "--expiredate", "1", "--groups", groups, "--", name]]
    return [
        [
            "usermod", "--password", "*", "--expiredate", "",
            "--groups", groups, "--shell", after.shell, "--", name,
        ]
    ]  # fmt: skip
