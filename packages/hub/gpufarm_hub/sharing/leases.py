# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases of GPU slices, and the queue. A slice has one holder, or at most as many as each of them accepts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpufarm_hub import clock as clocks
from gpufarm_hub.store import DamagedError, JsonStore

from . import answers, turns, waiting
from .slices import Slice, count_by_profile
from .turns import Place
from .waiting import SliceRequest, Ticket

REMEDY = "the hub takes the leases from the notebooks that run, before it hands out a slice"

# Seconds between two writes of the time at which a waiting user last asked.
SEEN_EVERY = 20.0


class NoSliceError(Exception):
    """The wanted slices cannot be had, however long one waits; the text is for the user."""


@dataclass(frozen=True)
class Lease:
    """Slices in the hands of one notebook.

    Attributes:
        owner: user and server name, ``alice/`` for the default server.
        unit: the notebook, as its engine names it (`Engine.name_of`).
        pieces: the slices, at least one.
        taken: ISO 8601 time.
        share: name of the user's limit.
        hours: hours after which the notebook is ended; 0 for never.
        notebooks: how many may hold the slices at once, this one included; 1 for this one alone.
        waited: seconds between the request and the lease; known only when the slices are taken.
    """

    owner: str
    unit: str
    pieces: tuple[Slice, ...]
    taken: str
    share: str
    hours: float = 0
    notebooks: int = 1
    waited: float = field(default=0.0, compare=False)

    @property
    def user(self) -> str:
        """Name of the user."""
        return waiting.user_of(self.owner)

    @property
    def ends(self) -> float:
        """Seconds since the epoch when its notebook is ended at the latest; infinity for never."""
        return datetime.fromisoformat(self.taken).timestamp() + 3600 * self.hours if self.hours else math.inf

    def overlaps(self, other: Lease) -> bool:
        """Tell whether both have a slice in common."""
        return any(piece.overlaps(one) for piece in self.pieces for one in other.pieces)

    def goes_with(self, others: Sequence[Lease]) -> bool:
        """Tell whether others leave a seat on each of its slices."""
        return all(turns.has_seat(piece, others, self.notebooks) for piece in self.pieces)

    @property
    def uuids(self) -> str:
        """The slices' UUIDs as CUDA takes them."""
        return ",".join(piece.uuid for piece in self.pieces)


class Leases:
    """The leases of this machine and the queue for them: one file, so that they always agree.

    Args:
        path: the file they are kept in.
        patience: seconds after which a waiting user who has not asked again loses the place.
        claim: seconds after which a user whose turn it is and who has not taken the slices loses the place.
        clock: tells the seconds since the epoch.
        publish: called with all leases, under the lock, whenever they have changed.
        missed: called with each ticket that is lost because its user has not taken the slices, and when
            that was.
    """

    def __init__(
        self,
        path: Path,
        patience: float = 600,
        claim: float = 600,
        clock: Callable[[], float] = clocks.epoch,
        publish: Callable[[list[Lease]], None] = lambda leases: None,
        missed: Callable[[Ticket, float], None] = lambda ticket, when: None,
    ) -> None:
        self._publish = publish
        self._missed = missed
        self._store = JsonStore(path, self._replaced, REMEDY)
        self._patience = patience
        self._claim = claim
        self._clock = clock

    def all(self) -> list[Lease]:
        """Return every lease."""
        return self._leases(self._store.read())

    def are_known(self) -> bool:
        """Tell whether the file says who holds what; else only the notebooks that run can tell."""
        return "leases" in self._store.read()

    def damage(self) -> str:
        """Return what is wrong with the file; empty when nothing is.

        Raises:
            StoreError: it cannot be read.
        """
        try:
            content = self._store.read()
            try:
                for lease in self._leases(content):
                    datetime.fromisoformat(lease.taken)
                    float(lease.hours)
                    if not lease.pieces or lease.notebooks < 1:
                        raise ValueError(f"no slices for {lease.owner}")
                self._tickets(content, lost=[])
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self._store.damaged(f"{type(error).__name__}: {error}") from error
        except DamagedError as error:
            return str(error)
        return ""

    def set_aside_if_damaged(self) -> str:
        """Rename a damaged file, which leaves no lease; return what was wrong and the new name, else nothing.

        Raises:
            StoreError: the file cannot be read or renamed.
        """
        return self._store.set_aside_if(self.damage)

    def adopt(self, leases: Iterable[tuple[Lease | None, Lease]]) -> list[Lease]:
        """Write down what notebooks that run hold; from then on the file says who holds what.

        Args:
            leases: of each notebook the lease that it had when it was looked at, and the one that it gets.

        Returns:
            Those whose notebook still had the same lease, and which are written.
        """
        with self._store.change() as content:
            stored = content.setdefault("leases", {})
            now = {lease.owner: lease for lease in self._leases(content)}
            adopted = [lease for before, lease in leases if now.get(lease.owner) == before]
            for lease in adopted:
                stored[lease.owner] = _entry(lease)
        return adopted

    def enter(self, request: SliceRequest, slices: list[Slice]) -> Place:
        """Enter the queue, or keep one's place in it; who is called then is so until the slices are taken.

        Args:
            request: what the owner wants; another request than before is a new one.
            slices: those of the machine.

        Returns:
            The place in the queue.

        Raises:
            NoSliceError: the user may not hold so many, or the machine does not have them.
        """
        with self._changing() as (content, tickets):
            refusal = self._enter(content, tickets, request, slices)
            held = [lease for lease in self._leases(content) if lease.owner != request.owner]
            places = self._settle(tickets, held, slices)
        if refusal:
            raise NoSliceError(refusal)
        return places[request.owner]

    def take(self, request: SliceRequest, unit: str, slices: list[Slice]) -> Lease | Place:
        """Give the owner free slices when it is their turn; else they wait.

        The caller has made sure that no notebook of this owner runs; what it held is given back in any case.

        Args:
            request: what the owner wants.
            unit: the notebook, as its engine will name it.
            slices: those of the machine.

        Returns:
            The lease; or the place in the queue, when others hold the slices or wait for them longer.

        Raises:
            NoSliceError: as `enter`.
        """
        with self._changing() as (content, tickets):
            content.get("leases", {}).pop(request.owner, None)
            refusal = self._enter(content, tickets, request, slices)
            places = self._settle(tickets, self._leases(content), slices)
            claim = None if refusal else places[request.owner].claim
            if claim:
                waited = self._clock() - tickets.pop(request.owner).since
                taken = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
                limit = request.limit
                lease = Lease(
                    request.owner,
                    unit,
                    claim.pieces,
                    taken,
                    limit.name,
                    limit.hours,
                    request.notebooks,
                    waited,
                )
                content.setdefault("leases", {})[request.owner] = _entry(lease)
        if refusal:
            raise NoSliceError(refusal)
        return lease if claim else places[request.owner]

    def _enter(
        self, content: dict[str, Any], tickets: dict[str, Ticket], request: SliceRequest, slices: list[Slice]
    ) -> str:
        """Put the request into the queue; if it can never be granted, return why and leave it out."""
        old = tickets.pop(request.owner, None)
        others = [lease for lease in self._leases(content) if lease.owner != request.owner]
        refusal = answers.refusal(request, others, slices)
        if not refusal:
            tickets[request.owner] = waiting.join(request, old, tickets.values(), self._clock())
        return refusal

    def _settle(
        self, tickets: dict[str, Ticket], held: Iterable[Lease], slices: Iterable[Slice]
    ) -> dict[str, Place]:
        """Note since when those are called whose turn it is; return all places, in their order."""
        now = self._clock()
        places = turns.places(tickets.values(), held, slices, now, self._claim)
        for place in places:
            if place.called and place.ticket.called is None:
                tickets[place.ticket.owner] = replace(place.ticket, called=now)
        return {place.ticket.owner: place for place in places}

    def release(self, owner: str) -> Lease | None:
        """Give back what the owner holds, if anything; return it."""
        with self._store.change() as content:
            held = [lease for lease in self._leases(content) if lease.owner == owner]
            content.get("leases", {}).pop(owner, None)
        return held[0] if held else None

    def drop(self, stale: Callable[[Lease], bool]) -> list[Lease]:
        """Take away every lease that ``stale`` says is over, under the lock; return those."""
        with self._store.change() as content:
            dropped = [lease for lease in self._leases(content) if stale(lease)]
            for lease in dropped:
                del content["leases"][lease.owner]
        return dropped

    def queue(self, slices: Iterable[Slice]) -> list[Place]:
        """Return who waits, in the order in which they are served."""
        content = self._store.read()
        tickets = self._tickets(content, lost=[])
        return turns.places(tickets.values(), self._leases(content), slices, self._clock(), self._claim)

    def ask(self, owner: str, slices: Iterable[Slice], all_known: bool = True) -> Place | None:
        """Return the owner's place in the queue, if any; users who ask keep it, until they are called.

        Args:
            owner: who asks.
            slices: those of the machine that may be given to somebody.
            all_known: whether there are no others; those of a GPU that does not answer may be there.
        """
        slices = list(slices)
        with self._changing() as (content, tickets):
            ticket = tickets.get(owner)
            if ticket and all_known and count_by_profile(slices)[ticket.profile] < ticket.count:
                del tickets[owner]  # the machine was partitioned anew: the request cannot be granted any more
            elif ticket and self._clock() - ticket.seen > SEEN_EVERY:
                tickets[owner] = waiting.seen(ticket, self._clock())
            places = self._settle(tickets, self._leases(content), slices)
        return places.get(owner)

    def leave(self, owner: str) -> bool:
        """Take the owner out of the queue; tell whether they were in it."""
        with self._changing() as (_content, tickets):
            return tickets.pop(owner, None) is not None

    def keep_places(self) -> None:
        """Let everybody in the queue ask and come anew: while the hub was down nobody could."""
        with self._store.change() as content:
            now = self._clock()
            for entry in content.get("queue", {}).values():
                entry["seen"] = now
                if entry.get("called") is not None:
                    entry["called"] = now

    def publish(self) -> None:
        """Publish the leases, as nobody knows whether that was done before."""
        with self._store.change() as content:
            self._publish(self._leases(content))

    def _replaced(self, before: dict[str, Any], content: dict[str, Any]) -> None:
        if before.get("leases") != content.get("leases"):
            self._publish(self._leases(content))

    def _leases(self, content: dict[str, Any]) -> list[Lease]:
        if content and not content.keys() <= {"leases", "queue"}:
            raise self._store.damaged("another version's")
        return [
            Lease(
                owner=owner,
                unit=entry["unit"],
                pieces=tuple(Slice(**piece) for piece in entry["slices"]),
                taken=entry["taken"],
                share=entry["share"],
                hours=entry.get("hours", 0),
                notebooks=entry.get("notebooks", 1),
            )
            for owner, entry in content.get("leases", {}).items()
        ]

    def _tickets(self, content: dict[str, Any], lost: list[Ticket]) -> dict[str, Ticket]:
        """Return the tickets of those who still have a place; add to ``lost`` those called in vain."""
        now = self._clock()
        tickets = {}
        for owner, entry in content.get("queue", {}).items():
            ticket = Ticket(owner=owner, **entry)
            if ticket.called is not None and ticket.called + self._claim < now:
                lost.append(ticket)
            elif ticket.seen >= now - self._patience:
                tickets[owner] = ticket
        return tickets

    @contextmanager
    def _changing(self) -> Iterator[tuple[dict[str, Any], dict[str, Ticket]]]:
        """Lend what is stored and the queue to one caller at a time; what became of both is stored."""
        lost: list[Ticket] = []
        # A block that does not end well shall store nothing.
        with self._store.change() as content:  # pylint: disable=contextmanager-generator-missing-cleanup
            tickets = self._tickets(content, lost)
            yield content, tickets
            queue = {
                owner: {key: value for key, value in asdict(ticket).items() if key != "owner"}
                for owner, ticket in tickets.items()
            }
            if queue or "queue" in content:
                content["queue"] = queue
        for ticket in lost:
            self._missed(ticket, (ticket.called or 0) + self._claim)


def _entry(lease: Lease) -> dict[str, Any]:
    """Return a lease as the file has it, below its owner's name."""
    return {
        "unit": lease.unit,
        "slices": [asdict(piece) for piece in lease.pieces],
        "taken": lease.taken,
        "share": lease.share,
        "hours": lease.hours,
        "notebooks": lease.notebooks,
    }
