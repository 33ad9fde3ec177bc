# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the machine a user may have at once, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limit:
    """What each of some users may have.

    Attributes:
        name: how the limit is called in messages.
        users: names of users it is for.
        groups: groups whose members it is for; with neither users nor groups it is for everybody.
        slices: GPU slices that one user may hold at once.
        servers: notebook servers that one user may run at once.
        hours: hours after which a notebook is ended; 0 for never.
        slices_together: GPU slices that all users of this limit may hold at once; 0 for any number.
    """

    name: str
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    slices: int = 1
    servers: int = 1
    hours: float = 0
    slices_together: int = 0

    def is_for(self, user: str, groups: Iterable[str]) -> bool:
        """Tell whether the limit is for a user who is in these groups."""
        if not self.users and not self.groups:
            return True
        return user in self.users or not self.groups.isdisjoint(groups)


# Who is named by no limit.
EVERYBODY = Limit("everybody")


def read(entries: Iterable[Mapping[str, Any]]) -> list[Limit]:
    """Return the limits in the role's variable ``jupyterhub_limits``, in its order."""
    return [
        Limit(
            name=str(entry["name"]),
            users=frozenset(entry.get("users") or ()),
            groups=frozenset(entry.get("groups") or ()),
            slices=int(entry.get("slices", 1)),
            servers=int(entry.get("servers", 1)),
            hours=float(entry.get("hours", 0)),
            slices_together=int(entry.get("slices_together", 0)),
        )
        for entry in entries
    ]


def limit_of(user: str, groups: Iterable[str], limits: Iterable[Limit]) -> Limit:
    """Return the first limit that is for the user."""
    names = list(groups)
    return next((limit for limit in limits if limit.is_for(user, names)), EVERYBODY)
