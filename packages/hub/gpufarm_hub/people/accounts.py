# SPDX-License-Identifier: GPL-3.0-or-later
"""The system accounts that notebooks run under, and the persons they belong to."""

from __future__ import annotations

import grp
import hashlib
import logging
import os
import pwd
import re
import subprocess
from pathlib import Path

from gpufarm_hub.store import JsonStore

from . import homes

# Members of this group are the accounts that were made here.
GROUP = "jupyterhub-users"

# POSIX portable names, lower case, at most 32 characters (useradd(8)).
NAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")

EXPIRED = "1970-01-02"  # usermod(8): day 1; day 0 would mean never to some programs (shadow(5))

LAST_PERSON = 60000  # UID_MAX of login.defs(5) unless that says otherwise; larger ones are a directory's

NUMBER_TAKEN = 4  # useradd(8), exit values
TRIES = 5

LOGIN_DEFS = Path("/etc/login.defs")
FIRST_PERSON = 1000  # Debian Policy Manual, section 9.2.2: accounts below belong to the system
NOBODY = (65534, 65535)  # the same section: user nobody, and (uid_t) -1 in 16 bits
# The same section: accounts of packages, such as slurm, and numbers that systemd gives to services.
OF_DISTRIBUTION = range(60000, 65536)

# Groups whose members become root, by the sudoers of distributions or by what they may open (Debian Wiki,
# "SystemGroups"; Docker, "Docker daemon attack surface"; LXD and Incus, "Security"). The first account of a
# cloud image is in one of them.
OF_ADMINISTRATORS = re.compile(r"admin|disk|docker|incus-admin|libvirt|lxd|root|shadow|sudo|wheel")

_log = logging.getLogger("gpufarm_hub")


class AccountError(Exception):
    """This person cannot have an account here; the text is for the user."""


class NoPersonError(AccountError):
    """The account is the system's, a service's or nobody's."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The account {name} is no account of a person on this machine, so it cannot have notebooks. "
            "Sign in with an account of your own."
        )


class NoAccountError(AccountError):
    """No account that all machines know has this name; it may be that nobody can tell at the moment."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} has no account that all machines of this service know, so no notebook can be started. "
            "Ask the administrator of this service."
        )


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _is_ours(name: str) -> bool:
    try:
        return name in grp.getgrnam(GROUP).gr_mem
    except KeyError:
        return False


def made_here() -> dict[str, pwd.struct_passwd]:
    """Return the accounts of persons that the hub has made, by name."""
    try:
        members = grp.getgrnam(GROUP).gr_mem
    except KeyError:
        return {}
    entries = {name: _entry(name) for name in members}
    return {name: entry for name, entry in entries.items() if entry and is_person(entry.pw_uid)}


def _first_person() -> int:
    try:
        found = re.search(r"^\s*UID_MIN\s+(\d+)", LOGIN_DEFS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) if found else FIRST_PERSON


def is_person(uid: int) -> bool:
    """Tell whether a user id is a person's: neither root, nor the system's, nor nobody's."""
    return uid >= _first_person() and uid not in NOBODY


def check_spelling(name: str) -> None:
    """Refuse names that cannot be an account.

    Raises:
        AccountError: with the rule.
    """
    if not NAME.fullmatch(name):
        raise AccountError(
            f"The user name {name!r:.40} cannot be used on this machine: it must start with a small letter "
            "and hold only small letters, digits, '_', '.' and '-'. "
            "Ask the administrator of your identity provider."
        )


def check_name(name: str, uid: int | None = None) -> None:
    """Refuse names that cannot be an account, or whose account is not this person's.

    Args:
        name: the user's name.
        uid: the user id that this person is known to have. An account of this name with this id is theirs,
            regardless of its origin: the machine may take its accounts from the same directory.

    Raises:
        AccountError: with the reason.
    """
    check_spelling(name)
    entry = _entry(name)
    if entry is None or _is_ours(name):
        return
    if uid is None or entry.pw_uid != uid or not is_person(uid):
        raise AccountError(
            f"The user name {name} belongs to an account of this machine itself, so it cannot be used here. "
            "Ask the administrator of this service."
        )


def check_shared(name: str, uid: int | None = None) -> None:
    """Refuse users whose account other machines cannot know.

    Args:
        name: the user's name.
        uid: see `check_name`.

    Raises:
        AccountError: with the reason.
    """
    check_name(name, uid)
    if _entry(name) is None or _is_ours(name):
        raise NoAccountError(name)


def uid_of_shared(name: str) -> int:
    """Return the user id of a person's account that other machines know, too.

    The name is all that a provider tells of the account. So it must be the account's own, letter by letter,
    and an account that can become root is opened to nobody.

    Args:
        name: the user's name, as the provider spells it.

    Raises:
        NoAccountError: there is no such account, or the hub has made it.
        AccountError: the account is no person's, or an administrator's.
    """
    check_spelling(name)
    entry = _entry(name)
    # A directory may find an account by other names, too.
    if entry is None or entry.pw_name != name or _is_ours(name):
        raise NoAccountError(name)
    uid = uid_of_person(name)
    if uid in OF_DISTRIBUTION:
        raise NoPersonError(name)
    if rights := sorted(filter(OF_ADMINISTRATORS.fullmatch, groups_of(name))):
        raise AccountError(
            f"The account {name} can administer this machine (group {rights[0]}), so a name from an identity "
            "provider does not open it. Ask the administrator of this service for an account without that "
            "right."
        )
    return uid


def uid_of_person(name: str) -> int:
    """Return the user id of a person's account on this machine.

    Raises:
        AccountError: there is no such account, or it is not a person's.
    """
    entry = _entry(name)
    if entry is None or not is_person(entry.pw_uid):
        raise NoPersonError(name)
    return entry.pw_uid


def groups_of(name: str) -> frozenset[str]:
    """Return the names of the account's groups on this machine; groups without a name are left out.

    Raises:
        AccountError: there is no such account.
    """
    entry = _entry(name)
    if entry is None:
        raise AccountError(f"The account {name} is gone. Ask the administrator of this service.")
    names = set()
    for gid in os.getgrouplist(name, entry.pw_gid):
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue
    return frozenset(names)


def ensure(name: str, uid: int | None = None, person: str = "") -> None:
    """Make the account, locked for any other way of logging in, and its home, unless they are there.

    Args:
        name: the user's name.
        uid: see `check_name`.
        person: whose it is (`Persons.mark`); empty for an account that the machine itself knows.

    Raises:
        AccountError: the name is refused, the account could not be made, or its home cannot be used.
    """
    check_name(name, uid)
    try:
        if not _entry(name):
            if homes.are_kept():
                make(name, _shared_number(name, uid, person))
            else:
                homes.check_absent(name)
                make(name)
        homes.ensure(name, person)
        if entry := _entry(name):
            homes.check_owner(entry)
    except homes.HomeError as error:
        _log.error("The home of %s: %s", name, error)
        raise AccountError(str(error)) from error


def _shared_number(name: str, uid: int | None, person: str) -> int:
    """Return the user id that the account must have here, as on the other machines that share its home."""
    number = uid if uid is not None and is_person(uid) else homes.number(name, person)
    try:
        other = pwd.getpwuid(number).pw_name
    except KeyError:
        return number
    _log.error("The account %s must have the user id %d, which is that of %s here", name, number, other)
    raise AccountError(
        f"The account {name} has the user id {number} wherever its home is used, and on this machine that is "
        f"the account {other}. Ask the administrator of this service."
    )


def make(name: str, number: int | None = None, group: str = "") -> None:
    """Make an account that is locked for any other way of logging in.

    Args:
        name: the user's name.
        number: the user id; None for one of which nothing in the homes' folder is left from before.
        group: the group that it belongs to; empty for one of its own.

    Raises:
        AccountError: the account could not be made.
    """
    free = _free_number() if number is None and not homes.are_kept() else None
    for attempt in range(TRIES):
        wanted = number if free is None else free + attempt
        made = subprocess.run(_command(name, wanted, group), check=False, capture_output=True, text=True)
        if made.returncode != NUMBER_TAKEN or free is None:
            break
    if made.returncode and not _entry(name):  # another notebook of the user may have been quicker
        _log.error("The account %s could not be made: %s", name, made.stderr.strip())
        raise AccountError(
            f"The account {name} could not be made on this machine. Tell the administrator of this service; "
            "the hub's journal has the reason."
        )


def _free_number() -> int | None:
    """Return a user id above those of all homes; None where all of these have an account.

    A home without an account may wait for its user's account to be restored, and another account with its
    number could read it.
    """
    owners, taken = homes.owners(), {entry.pw_uid for entry in pwd.getpwall()}
    if owners <= taken:
        return None
    persons = [number for number in owners | taken if is_person(number) and number < LAST_PERSON]
    return max([*persons, _first_person() - 1]) + 1


def _command(name: str, number: int | None, group: str) -> list[str]:
    return [
        "/usr/sbin/useradd",
        # A home that is there already is left as it is.
        "--no-create-home" if homes.are_kept() else "--create-home",
        *([] if number is None else ["--uid", str(number)]),
        *(["--gid", group, "--no-user-group"] if group else ["--user-group"]),
        "--groups", GROUP,
        "--shell", "/usr/sbin/nologin",
        # A key opens SSH without a shell, too; PAM gives an expired account no session whatever the way.
        "--expiredate", EXPIRED,
        "--key", "HOME_MODE=0700",
        "--comment", "JupyterHub user",
        "--", name,
    ]  # fmt: skip


class Persons:
    """Remembers which person a user name belongs to.

    OpenID Connect Core 1.0, section 5.7: only issuer and subject together identify a person; a name such as
    ``preferred_username`` may be given to somebody else later, who must not inherit the first one's files.

    Args:
        path: the file they are kept in.
    """

    def __init__(self, path: Path) -> None:
        self._store = JsonStore(path)

    def mark(self, name: str) -> str:
        """Return what stands for the person of a name, alike on all machines; empty for a name of nobody."""
        person = self._store.read().get(name)
        if person is None:
            return ""
        whole = f"{person['issuer']}\0{person['subject']}"
        return hashlib.sha256(whole.encode()).hexdigest()[:32]

    def bind(self, name: str, issuer: str, subject: str, only: bool = False) -> None:
        """Bind a name to a person at the first login.

        Args:
            name: the user's name.
            issuer: who knows the person.
            subject: the issuer's identifier of the person, which never changes.
            only: whether the person may have no second name.

        Raises:
            AccountError: the name is bound to somebody else, or the person to another name.
        """
        with self._store.change() as content:
            person = {"issuer": issuer, "subject": subject}
            others = [other for other, known in content.items() if known == person and other != name]
            if only and others:
                raise AccountError(
                    f"Your identity provider calls you {name} now, and your account here is {others[0]}. "
                    "Ask the administrator of this service."
                )
            if content.setdefault(name, person) != person:
                raise AccountError(
                    f"The user name {name} belongs to another person on this machine. "
                    "Ask the administrator of this service."
                )
