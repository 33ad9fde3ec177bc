# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of a directory beside the accounts of a machine. No I/O.

Source: RFC 2849 (LDIF), RFC 4515 (filters), RFC 2307 (posixAccount, posixGroup).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping

# Numbers of persons and their groups; those of the system are below (Debian Policy, 9.2.2).
FIRST_NUMBER = 1000
# nobody, and what comes after it.
END_OF_NUMBERS = 65534
_NEXT = "change the number on the machine."


def escaped(value: str) -> str:
    """Return a value as it stands in a filter."""
    return "".join(f"\\{ord(letter):02x}" if letter in "\\*()\0" else letter for letter in value)


def entries(ldif: str) -> list[dict[str, str]]:
    """Return entries of a directory: the first value of each attribute, by its name in lower case.

    Args:
        ldif: what ``ldapsearch -LLL`` prints.
    """
    found = []
    for part in ldif.replace("\r\n", "\n").replace("\n ", "").split("\n\n"):
        entry: dict[str, str] = {}
        for line in part.splitlines():
            name, colon, value = line.partition(":")
            if not colon or name.startswith("#"):
                continue
            text = value.strip()
            if value.startswith(":"):
                text = base64.b64decode(value[1:].strip()).decode(errors="replace")
            entry.setdefault(name.lower(), text)
        if "dn" in entry:
            found.append(entry)
    return found


def persons_filter(accounts: Mapping[str, int]) -> str:
    """Return the filter for entries that have the name or number of an account of the machine.

    Args:
        accounts: numbers by name; those of persons count.
    """
    parts = [
        f"(uid={escaped(name)})(uidNumber={number})"
        for name, number in sorted(accounts.items())
        if FIRST_NUMBER <= number < END_OF_NUMBERS
    ]
    return f"(&(objectClass=posixAccount)(|{''.join(parts)}))" if parts else ""


def groups_filter(groups: Mapping[str, int]) -> str:
    """Return the same for groups that have the number of one of the machine.

    Args:
        groups: numbers by name.
    """
    parts = [
        f"(gidNumber={number})"
        for name, number in sorted(groups.items())
        if FIRST_NUMBER <= number < END_OF_NUMBERS
    ]
    return f"(&(objectClass=posixGroup)(|{''.join(parts)}))" if parts else ""


def clashes(
    persons: Iterable[Mapping[str, str]],
    accounts: Mapping[str, int],
    of_groups: Iterable[Mapping[str, str]],
    groups: Mapping[str, int],
) -> Iterator[str]:
    """Yield for each entry of the directory that is two things on the machine what it is.

    Args:
        persons: entries of `persons_filter`.
        accounts: numbers of the machine's own accounts, by name.
        of_groups: entries of `groups_filter`.
        groups: numbers of the machine's own groups, by name.
    """
    by_number = {number: name for name, number in accounts.items()}
    for person in persons:
        name, number = person.get("uid", ""), _number(person.get("uidnumber", ""))
        if name in accounts:
            if accounts[name] != number:
                yield (
                    f"{name} has the number {accounts[name]} on the machine and {number} in the directory; "
                    "give the account of the machine that number, or remove it."
                )
        elif number in by_number:
            yield f"{number} is {by_number[number]} on the machine and {name} in the directory; {_NEXT}"
    by_number = {number: name for name, number in groups.items()}
    for group in of_groups:
        name, number = group.get("cn", ""), _number(group.get("gidnumber", ""))
        if number in by_number and by_number[number] != name:
            own = by_number[number]
            yield f"{number} is the group {own} on the machine and {name} in the directory; {_NEXT}"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1
