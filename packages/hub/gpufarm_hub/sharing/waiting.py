# SPDX-License-Identifier: GPL-3.0-or-later
"""The queue for slices: users with fewer slices are served first, ties by arrival. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .limits import Limit
from .slices import Slice


@dataclass(frozen=True)
class SliceRequest:
    """Request of a notebook for slices.

    Attributes:
        owner: user and server name, ``alice/`` for the default server.
        profile: of the slices, such as ``1g.10gb``.
        count: how many of them.
        limit: what the user may have.
        options: everything the user chose, with which the notebook is started when it is its turn.
        notebooks: how many may hold the slices at once, this one included; 1 for this one alone.
    """

    owner: str
    profile: str
    count: int
    limit: Limit
    options: Mapping[str, Any]
    notebooks: int = 1


@dataclass(frozen=True)
class Ticket:
    """A place in the queue.

    Attributes:
        owner, profile, count, options, notebooks: those of the request.
        share: name of the user's limit.
        slices: how many slices its user may hold.
        slices_together: how many slices its share may hold; 0 for any number.
        since: seconds since the epoch when the request was made.
        seen: seconds since the epoch when its user last asked; who asks no more loses the place.
        gpus: how many whole GPUs its user may hold; None for any number.
        hours: hours after which the notebook will be ended; 0 for never.
        called: seconds since the epoch when the slices were there for the taking; None before.
    """

    owner: str
    profile: str
    count: int
    options: Mapping[str, Any]
    share: str
    slices: int
    slices_together: int
    since: float
    seen: float
    gpus: int | None = None
    hours: float = 0
    called: float | None = None
    notebooks: int = 1


class Held(Protocol):
    """Input of the order of the queue: an owner, the name of their limit, slices, and the end of the lease.

    The end is in seconds since the epoch; infinity where it is not known. `notebooks` is that of the request.
    """

    @property
    def owner(self) -> str: ...

    @property
    def share(self) -> str: ...

    @property
    def pieces(self) -> tuple[Slice, ...]: ...

    @property
    def ends(self) -> float: ...

    @property
    def notebooks(self) -> int: ...


def user_of(owner: str) -> str:
    """Return the user's name; names of servers and of users have no slash."""
    return owner.partition("/")[0]


def join(request: SliceRequest, old: Ticket | None, others: Iterable[Ticket], now: float) -> Ticket:
    """Return the ticket of the request: its present one, or a new one if it has none or has changed.

    A new one is the last, also if the time was set back since the others were made.
    """
    last = max((ticket.since for ticket in others), default=now)
    same = old is not None and _wanted(old) == _wanted(request)
    return Ticket(
        owner=request.owner,
        profile=request.profile,
        count=request.count,
        options=request.options,
        share=request.limit.name,
        slices=request.limit.slices,
        slices_together=request.limit.slices_together,
        since=old.since if old and same else max(now, last + 1e-6),
        seen=now,
        gpus=request.limit.gpus,
        hours=request.limit.hours,
        called=old.called if old and same else None,
        notebooks=request.notebooks,
    )


def _wanted(asked: SliceRequest | Ticket) -> tuple[str, int, bool]:
    return asked.profile, asked.count, asked.notebooks > 1


def seen(ticket: Ticket, now: float) -> Ticket:
    """Return the ticket of a user who has just asked."""
    return replace(ticket, seen=now)


def in_order(tickets: Iterable[Ticket], held: Iterable[Held]) -> list[Ticket]:
    """Return the tickets in the order in which they are served; those who are called stay in front."""
    slices = Counter[str]()
    for hold in held:
        slices[user_of(hold.owner)] += len(hold.pieces)

    def key(ticket: Ticket) -> tuple[bool, int, float, str]:
        return ticket.called is None, slices[user_of(ticket.owner)], ticket.since, ticket.owner

    return sorted(tickets, key=key)
