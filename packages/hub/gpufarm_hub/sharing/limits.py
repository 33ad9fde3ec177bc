# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the machine a user may have at once, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jupyterhub.traitlets import ByteSpecification


@dataclass(frozen=True)
class Limit:
    """Limits of some users, each.

    Attributes:
        name: how the limit is called in messages.
        users: names of users it is for.
        groups: groups whose members it is for; with neither users nor groups it is for everybody.
        slices: GPU slices that one user may hold at once.
        servers: notebook servers that one user may run at once.
        hours: hours after which a notebook is ended; 0 for never.
        slices_together: GPU slices that all users of this limit may hold at once; 0 for any number.
        gpus: how many of one user's slices may be whole GPUs; None for any.
        memory: bytes of memory that one user's notebooks may have together; 0 for any.
    """

    name: str
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    slices: int = 1
    servers: int = 1
    hours: float = 0
    slices_together: int = 0
    gpus: int | None = None
    memory: int = 0

    def is_for(self, user: str, groups: Iterable[str]) -> bool:
        """Tell whether the limit is for a user who is in these groups."""
        if not self.users and not self.groups:
            return True
        return user in self.users or not self.groups.isdisjoint(groups)


# Limit of users that no entry names.
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
            gpus=int(entry["gpus"]) if "gpus" in entry else None,
            memory=bytes_of(entry["memory"]) if entry.get("memory") else 0,
        )
        for entry in entries
    ]


def bytes_of(size: str) -> int:
    """Return the bytes of a size such as ``2G``, as JupyterHub reads it."""
    return int(size[:-1]) * int(ByteSpecification.UNIT_SUFFIXES[size[-1]])


def refusal(limit: Limit, others: Sequence[int], memory: int) -> str:
    """Return why a user may not start a notebook, in a sentence for them; empty when they may.

    Args:
        limit: the user's.
        others: bytes of memory of each other notebook that the user runs.
        memory: bytes of memory of this one.
    """
    if len(others) >= limit.servers:
        return (
            f"You run {len(others)} notebook server{'' if len(others) == 1 else 's'} already and may run "
            f"{limit.servers} at once (limit {limit.name}); stop another one first."
        )
    if limit.memory and sum(others) + memory > limit.memory:
        return (
            f"Your other notebooks have {sum(others) / 2**30:g} GiB of memory and all of yours may have "
            f"{limit.memory / 2**30:g} GiB (limit {limit.name}); choose less, or stop another one first."
        )
    return ""


def limit_of(user: str, groups: Iterable[str], limits: Iterable[Limit]) -> Limit:
    """Return the first limit that is for the user."""
    names = list(groups)
    return next((limit for limit in limits if limit.is_for(user, names)), EVERYBODY)
