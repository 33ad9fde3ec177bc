# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of the queue, and backfilling. No I/O; times are seconds since the epoch.

Where fewer slices are free than the first in line wants, they do not lie idle: those behind may have them, as
long as the first starts no later than it would without them (EASY backfilling: Lifka, "The ANL/IBM SP
scheduling system", 1995). When it starts at the latest is known from the hours that notebooks may run; where
one in its way may run forever, nothing is known, and nobody can delay it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .slices import Slice
from .waiting import Held, Ticket, in_order, user_of

AT_ONCE = -math.inf


@dataclass(frozen=True)
class Claim:
    """Slices that are kept for a ticket whose turn it is (a `Held`).

    Attributes:
        owner, share: those of the ticket.
        pieces: the slices.
        until: when they are kept no more.
        ends: when the notebook that takes them has ended, at the latest.
        notebooks: that of the ticket.
    """

    owner: str
    share: str
    pieces: tuple[Slice, ...]
    until: float
    ends: float
    notebooks: int


@dataclass(frozen=True)
class Place:
    """Information for a waiting user.

    Attributes:
        ticket: the ticket.
        position: 1 for the first of those who wait for this profile.
        waiting: how many wait for this profile.
        claim: what is there for the taking; None before it is their turn.
        likely: when it is likely to be their turn, if nobody ends earlier; infinity where that is not known.
    """

    ticket: Ticket
    position: int
    waiting: int
    claim: Claim | None
    likely: float = math.inf

    @property
    def called(self) -> bool:
        """Whether it is their turn."""
        return self.claim is not None


@dataclass(frozen=True)
class _Plan:
    """Leases and their ends.

    Attributes:
        holders: those who hold each slice of the machine.
        held: what users and shares hold.
    """

    holders: Mapping[Slice, tuple[Held, ...]]
    held: tuple[Held, ...]

    def free(self, ticket: Ticket) -> list[Slice]:
        """Return the slices that the ticket can have; first those with most holders, so few are shared."""
        free = [piece for piece, ends in self._until(ticket).items() if ends == AT_ONCE]
        return sorted(free, key=lambda piece: -len(self.holders[piece]))

    def with_claim(self, claim: Claim) -> _Plan:
        """Return the plan in which the claim is held as well."""
        more = {piece: (*self.holders[piece], claim) for piece in claim.pieces}
        return _Plan({**self.holders, **more}, (*self.held, claim))

    def _until(self, ticket: Ticket) -> dict[Slice, float]:
        """Return when the slices of the ticket's profile have a seat for it."""
        return {
            piece: _seats(holders, ticket.notebooks)[0]
            for piece, holders in self.holders.items()
            if piece.profile == ticket.profile
        }

    def allowed(self, ticket: Ticket) -> float:
        """Return when the limits of the ticket's user allow it, if nothing but known ends happens."""
        mine = [hold for hold in self.held if user_of(hold.owner) == user_of(ticket.owner)]
        when = _at_most(ticket.slices - ticket.count, [(hold.ends, len(hold.pieces)) for hold in mine])
        if ticket.gpus is not None and any(
            piece.whole for piece in self.holders if piece.profile == ticket.profile
        ):
            gpus = [(hold.ends, sum(piece.whole for piece in hold.pieces)) for hold in mine]
            when = max(when, _at_most(ticket.gpus - ticket.count, gpus))
        if ticket.slices_together:
            share = [(hold.ends, len(hold.pieces)) for hold in self.held if hold.share == ticket.share]
            when = max(when, _at_most(ticket.slices_together - ticket.count, share))
        return when

    def start(self, ticket: Ticket) -> float:
        """Return when the ticket is served at the latest; infinity where that is not known."""
        pieces = self._until(ticket).values()
        busy = [(ends, 1) for ends in pieces if ends != AT_ONCE]
        return max(self.allowed(ticket), _at_most(len(pieces) - ticket.count, busy))


def _at_most(most: int, held: Iterable[tuple[float, int]]) -> float:
    """Return when no more than ``most`` slices are held.

    Args:
        most: how many may be.
        held: until when how many are.
    """
    held = sorted(held)
    left = sum(count for _ends, count in held)
    when = AT_ONCE
    for ends, count in held:
        if left <= most:
            break
        left -= count
        when = ends
    return when if left <= most else math.inf


def call(
    tickets: Iterable[Ticket], held: Iterable[Held], slices: Iterable[Slice], now: float, patience: float
) -> dict[str, Claim]:
    """Return the claims of those whose turn it is, by owner.

    A ticket that a limit of its user or share forbids at the moment keeps nothing from those behind it.

    Args:
        tickets: who waits.
        held: what is held.
        slices: those of the machine.
        now: the time.
        patience: seconds for which slices are kept for somebody who is called.
    """
    held = tuple(held)
    plan = _Plan({piece: _holders(piece, held) for piece in slices}, held)
    claims: dict[str, Claim] = {}
    first: dict[str, tuple[Ticket, float]] = {}  # by profile: who is first in line, and starts when
    for ticket in in_order(tickets, held):
        if plan.allowed(ticket) != AT_ONCE:
            continue
        free = plan.free(ticket)
        if len(free) < ticket.count:
            first.setdefault(ticket.profile, (ticket, plan.start(ticket)))
            continue
        until = (now if ticket.called is None else ticket.called) + patience
        ends = until + 3600 * ticket.hours if ticket.hours else math.inf
        pieces = tuple(free[: ticket.count])
        claim = Claim(ticket.owner, ticket.share, pieces, until, ends, ticket.notebooks)
        then = plan.with_claim(claim)
        if all(then.start(other) <= start for other, start in first.values()):
            claims[ticket.owner] = claim
            plan = then
    return claims


def _holders(piece: Slice, held: Iterable[Held]) -> tuple[Held, ...]:
    return tuple(hold for hold in held if any(piece.overlaps(other) for other in hold.pieces))


def _seats(holders: Iterable[Held], notebooks: int) -> list[float]:
    """Return when the seats of a slice become free, in order.

    A notebook comes in as long as there are fewer than it, and each of those that are there, accepts. So a
    slice has one holder that accepts no other, or some that share it.

    Args:
        holders: those who hold it.
        notebooks: how many those who come accept; so many seats there are in the end.
    """
    left = sorted(holders, key=lambda hold: hold.ends)
    times: list[float] = []
    when = AT_ONCE
    while True:
        most = min([notebooks, *(hold.notebooks for hold in left)])
        times += [when] * (most - len(left) - len(times))
        if not left:
            return times
        when = left.pop(0).ends


def has_seat(piece: Slice, held: Iterable[Held], notebooks: int) -> bool:
    """Tell whether a slice has a seat at once; arguments as `when_free`."""
    return _seats(_holders(piece, held), notebooks)[0] == AT_ONCE


def when_free(held: Iterable[Held], slices: Iterable[Slice], notebooks: int = 1) -> dict[str, list[float]]:
    """Return by profile when seats on its slices become free, in order, if all run for as long as they may.

    Args:
        held: leases, and claims of users who are called.
        slices: those of the machine.
        notebooks: how many seats each slice has; with 1, a slice is a seat.
    """
    held = list(held)
    times: dict[str, list[float]] = {}
    for piece in slices:
        times.setdefault(piece.profile, []).extend(_seats(_holders(piece, held), notebooks))
    return {profile: sorted(found) for profile, found in times.items()}


def wanted(tickets: Iterable[Ticket], notebooks: int) -> int:
    """Return how many seats tickets take from those behind them, at most.

    Args:
        tickets: who waits for slices of one profile.
        notebooks: how many seats a slice has for those behind them.
    """
    return sum(ticket.count * (notebooks if ticket.notebooks == 1 else 1) for ticket in tickets)


def likely(times: Sequence[float], count: int) -> float:
    """Return when so many seats are free. Limits of users and those who overtake are left out.

    Args:
        times: those of `when_free`.
        count: how many seats, with those that users who are served earlier will take.

    Returns:
        `AT_ONCE` if they are free; infinity where notebooks in the way may run forever, or have not started.
    """
    return times[count - 1] if count <= len(times) else math.inf


def places(
    tickets: Iterable[Ticket], held: Iterable[Held], slices: Iterable[Slice], now: float, patience: float
) -> list[Place]:
    """Return what every waiting user is told, in the order in which they are served; arguments as `call`."""
    tickets, held, slices = list(tickets), list(held), list(slices)
    claims = call(tickets, held, slices, now, patience)
    waiting = Counter(ticket.profile for ticket in tickets)
    busy = [*held, *claims.values()]
    free = {number: when_free(busy, slices, number) for number in {ticket.notebooks for ticket in tickets}}
    before, ahead = Counter[str](), defaultdict[str, list[Ticket]](list)
    found = []
    for ticket in in_order(tickets, held):
        profile, claim = ticket.profile, claims.get(ticket.owner)
        before[profile] += 1
        when = now
        if claim is None:
            count = wanted(ahead[profile], ticket.notebooks) + ticket.count
            when = likely(free[ticket.notebooks].get(profile, ()), count)
            ahead[profile].append(ticket)
        found.append(Place(ticket, before[profile], waiting[profile], claim, max(when, now)))
    return found
