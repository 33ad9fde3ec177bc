# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is. Who holds fewer slices goes first, among equals who came first. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .limits import Limit
from .slices import Slice


@dataclass(frozen=True)
class Wish:
    """What a notebook wants to hold.

    Attributes:
        owner: user and server name, ``alice/`` for the default server.
        profile: of the slices, such as ``1g.10gb``.
        count: how many of them.
        limit: what the user may have.
        options: everything the user chose, with which the notebook is started when it is its turn.
    """

    owner: str
    profile: str
    count: int
    limit: Limit
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Ticket:
    """A place in the queue.

    Attributes:
        owner, profile, count, options: those of the wish.
        share: name of the user's limit.
        slices: how many slices its user may hold.
        slices_together: how many slices its share may hold; 0 for any number.
        since: seconds since the epoch when the wish was made.
        seen: seconds since the epoch when its user last asked; who asks no more loses the place.
        gpus: how many whole GPUs its user may hold; None for any number.
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


@dataclass(frozen=True)
class Place:
    """What a waiting user is told.

    Attributes:
        ticket: the ticket.
        position: 1 for the first of those who wait for this profile.
        waiting: how many wait for this profile.
        called: whether the slices are there for the taking.
    """

    ticket: Ticket
    position: int
    waiting: int
    called: bool


class Held(Protocol):
    """The part of a lease that decides whose turn it is: its owner, the name of their limit, the slices."""

    @property
    def owner(self) -> str: ...

    @property
    def share(self) -> str: ...

    @property
    def pieces(self) -> tuple[Slice, ...]: ...


def user_of(owner: str) -> str:
    """Return the user's name; names of servers and of users have no slash."""
    return owner.partition("/")[0]


def join(wish: Wish, old: Ticket | None, others: Iterable[Ticket], now: float) -> Ticket:
    """Return the wish's ticket: the one it has, or a new one when there is none or the wish is another.

    A new one is the last, also if the time was set back since the others were made.
    """
    last = max((ticket.since for ticket in others), default=now)
    same = old is not None and (old.profile, old.count) == (wish.profile, wish.count)
    return Ticket(
        owner=wish.owner,
        profile=wish.profile,
        count=wish.count,
        options=wish.options,
        share=wish.limit.name,
        slices=wish.limit.slices,
        slices_together=wish.limit.slices_together,
        since=old.since if old and same else max(now, last + 1e-6),
        seen=now,
        gpus=wish.limit.gpus,
    )


def seen(ticket: Ticket, now: float) -> Ticket:
    """Return the ticket of a user who has just asked."""
    return replace(ticket, seen=now)


def in_order(tickets: Iterable[Ticket], held: Iterable[Held]) -> list[Ticket]:
    """Return the tickets, the one to be served first at the front."""
    slices = _slices_per_user(held)
    return sorted(tickets, key=lambda ticket: (slices[user_of(ticket.owner)], ticket.since, ticket.owner))


def call(tickets: Iterable[Ticket], held: Iterable[Held], slices: Iterable[Slice]) -> dict[str, list[Slice]]:
    """Return whose turn it is, and the slices for them.

    Free slices are kept for a ticket that needs more than are free, else it would wait forever. A ticket that
    its user's limit or its share's forbids at the moment keeps nothing from those behind it.
    """
    held, slices = list(held), list(slices)
    busy = [piece for hold in held for piece in hold.pieces]
    whole = {piece.profile for piece in slices if piece.whole}
    free = [piece for piece in slices if not any(piece.overlaps(other) for other in busy)]
    of_user, gpus_of_user, of_share = _slices_per_user(held), Counter[str](), Counter[str]()
    for hold in held:
        gpus_of_user[user_of(hold.owner)] += sum(piece.whole for piece in hold.pieces)
        of_share[hold.share] += len(hold.pieces)
    called: dict[str, list[Slice]] = {}
    for ticket in in_order(tickets, held):
        user = user_of(ticket.owner)
        gpus = ticket.count if ticket.profile in whole else 0
        if of_user[user] + ticket.count > ticket.slices:
            continue
        if gpus and ticket.gpus is not None and gpus_of_user[user] + gpus > ticket.gpus:
            continue
        if ticket.slices_together and of_share[ticket.share] + ticket.count > ticket.slices_together:
            continue
        mine = [piece for piece in free if piece.profile == ticket.profile][: ticket.count]
        free = [piece for piece in free if piece not in mine]
        if len(mine) == ticket.count:
            called[ticket.owner] = mine
            of_user[user] += ticket.count
            gpus_of_user[user] += gpus
            of_share[ticket.share] += ticket.count
    return called


def places(tickets: Iterable[Ticket], held: Iterable[Held], slices: Iterable[Slice]) -> list[Place]:
    """Return what every waiting user is told, in the order in which they are served."""
    tickets, held = list(tickets), list(held)
    called = call(tickets, held, slices)
    waiting = Counter(ticket.profile for ticket in tickets)
    before = Counter[str]()
    found = []
    for ticket in in_order(tickets, held):
        before[ticket.profile] += 1
        position = before[ticket.profile]
        found.append(Place(ticket, position, waiting[ticket.profile], ticket.owner in called))
    return found


def _slices_per_user(held: Iterable[Held]) -> Counter[str]:
    count = Counter[str]()
    for hold in held:
        count[user_of(hold.owner)] += len(hold.pieces)
    return count
