# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds which GPU slices, and who waits for some. A slice has one holder at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpufarm_hub import clock as clocks
from gpufarm_hub.store import DamagedError, JsonStore

from . import waiting
from .slices import Slice
from .waiting import Place, Ticket, Wish

REMEDY = "restart jupyterhub.service, which takes the leases from the notebooks that run"

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
        waited: seconds between the wish and the lease; known only when the slices are taken.
    """

    owner: str
    unit: str
    pieces: tuple[Slice, ...]
    taken: str
    share: str
    waited: float = field(default=0.0, compare=False)

    @property
    def user(self) -> str:
        """Name of the user."""
        return waiting.user_of(self.owner)

    @property
    def uuids(self) -> str:
        """The slices' UUIDs as CUDA takes them."""
        return ",".join(piece.uuid for piece in self.pieces)


class Leases:
    """The leases of this machine and the queue for them: one file, so that they always agree.

    Args:
        path: the file they are kept in.
        patience: seconds after which a waiting user who has not asked again loses the place.
        clock: tells the seconds since the epoch.
        publish: called with all leases, under the lock, whenever they have changed.
    """

    def __init__(
        self,
        path: Path,
        patience: float = 600,
        clock: Callable[[], float] = clocks.epoch,
        publish: Callable[[list[Lease]], None] = lambda leases: None,
    ) -> None:
        self._publish = publish
        self._store = JsonStore(path, self._replaced, REMEDY)
        self._patience = patience
        self._clock = clock

    def all(self) -> list[Lease]:
        """Return every lease."""
        return self._leases(self._store.read())

    def are_stored(self) -> bool:
        """Tell whether the file is there."""
        return self._store.path.exists()

    def set_aside_if_damaged(self) -> str:
        """Rename a damaged file, which leaves no lease; return what was wrong and the new name, else nothing.

        Raises:
            StoreError: the file cannot be read or renamed.
        """
        try:
            content = self._store.read()
            try:
                for lease in self._leases(content):
                    datetime.fromisoformat(lease.taken)
                    if not lease.pieces:
                        raise ValueError(f"no slices for {lease.owner}")
                self._tickets(content)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self._store.damaged(f"{type(error).__name__}: {error}") from error
        except DamagedError as error:
            return f"{error}. It is kept as {self._store.set_aside()}"
        return ""

    def adopt(self, lease: Lease) -> None:
        """Write down what a notebook that runs holds."""
        with self._store.change() as content:
            content.setdefault("leases", {})[lease.owner] = _entry(lease)

    def free(self, slices: Iterable[Slice]) -> list[Slice]:
        """Return the slices that no lease touches: a hint for the form, the decision is taken by `take`."""
        held = [piece for lease in self.all() for piece in lease.pieces]
        return [piece for piece in slices if not any(piece.overlaps(other) for other in held)]

    def enter(self, wish: Wish, slices: list[Slice]) -> Place:
        """Enter the queue, or keep one's place in it; who is called then is so until the slices are taken.

        Args:
            wish: what the owner wants; another wish than before is a new one.
            slices: those of the machine.

        Returns:
            The place in the queue.

        Raises:
            NoSliceError: the user may not hold so many, or the machine does not have them.
        """
        with self._store.change() as content:
            refusal = self._enter(content, wish, slices)
            tickets = self._tickets(content)
            held = [lease for lease in self._leases(content) if lease.owner != wish.owner]
        if refusal:
            raise NoSliceError(refusal)
        every = waiting.places(tickets.values(), held, slices)
        return next(place for place in every if place.ticket.owner == wish.owner)

    def take(self, wish: Wish, unit: str, slices: list[Slice]) -> Lease | Place:
        """Give the owner free slices when it is their turn; else they wait.

        The caller has made sure that no notebook of this owner runs; what it held is given back in any case.

        Args:
            wish: what the owner wants.
            unit: the notebook, as its engine will name it.
            slices: those of the machine.

        Returns:
            The lease; or the place in the queue, when others hold the slices or wait for them longer.

        Raises:
            NoSliceError: as `enter`.
        """
        with self._store.change() as content:
            content.get("leases", {}).pop(wish.owner, None)
            refusal = self._enter(content, wish, slices)
            tickets, held = self._tickets(content), self._leases(content)
            pieces = waiting.call(tickets.values(), held, slices).get(wish.owner)
            if pieces and not refusal:
                del content["queue"][wish.owner]
                waited = self._clock() - tickets[wish.owner].since
                taken = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
                lease = Lease(wish.owner, unit, tuple(pieces), taken, wish.limit.name, waited)
                content.setdefault("leases", {})[wish.owner] = _entry(lease)
        if refusal:
            raise NoSliceError(refusal)
        if pieces:
            return lease
        every = waiting.places(tickets.values(), held, slices)
        return next(place for place in every if place.ticket.owner == wish.owner)

    def _enter(self, content: dict[str, Any], wish: Wish, slices: list[Slice]) -> str:
        """Put the wish into the queue; return why it cannot be granted ever, if so: then it is not in it."""
        tickets = self._tickets(content)
        old = tickets.pop(wish.owner, None)
        others = [lease for lease in self._leases(content) if lease.owner != wish.owner]
        refusal = _refusal(wish, others, slices)
        if not refusal:
            tickets[wish.owner] = waiting.join(wish, old, tickets.values(), self._clock())
        self._keep(content, tickets)
        return refusal

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
        return waiting.places(self._tickets(content).values(), self._leases(content), slices)

    def ask(self, owner: str, slices: Iterable[Slice]) -> Place | None:
        """Return the owner's place in the queue, if any; who asks keeps it."""
        slices = list(slices)
        place = next((place for place in self.queue(slices) if place.ticket.owner == owner), None)
        if place and count_by_profile(slices)[place.ticket.profile] < place.ticket.count:
            self.leave(owner)  # the machine was partitioned anew: the wish cannot be granted any more
            return None
        if place and self._clock() - place.ticket.seen > SEEN_EVERY:
            with self._store.change() as content:
                tickets = self._tickets(content)
                if owner in tickets:
                    tickets[owner] = waiting.seen(tickets[owner], self._clock())
                self._keep(content, tickets)
        return place

    def leave(self, owner: str) -> bool:
        """Take the owner out of the queue; tell whether they were in it."""
        with self._store.change() as content:
            tickets = self._tickets(content)
            left = tickets.pop(owner, None)
            self._keep(content, tickets)
        return left is not None

    def keep_places(self) -> None:
        """Let everybody in the queue ask anew: while the hub was down nobody could."""
        with self._store.change() as content:
            now = self._clock()
            for entry in content.get("queue", {}).values():
                entry["seen"] = now

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
            )
            for owner, entry in content.get("leases", {}).items()
        ]

    def _tickets(self, content: dict[str, Any]) -> dict[str, Ticket]:
        """Return the tickets of those who have asked lately."""
        oldest = self._clock() - self._patience
        return {
            owner: Ticket(owner=owner, **entry)
            for owner, entry in content.get("queue", {}).items()
            if entry["seen"] >= oldest
        }

    @staticmethod
    def _keep(content: dict[str, Any], tickets: dict[str, Ticket]) -> None:
        entries = {owner: asdict(ticket) for owner, ticket in tickets.items()}
        content["queue"] = {
            owner: {key: value for key, value in entry.items() if key != "owner"}
            for owner, entry in entries.items()
        }


def _entry(lease: Lease) -> dict[str, Any]:
    """Return a lease as the file has it, below its owner's name."""
    return {
        "unit": lease.unit,
        "slices": [asdict(piece) for piece in lease.pieces],
        "taken": lease.taken,
        "share": lease.share,
    }


def in_words(place: Place) -> str:
    """Tell a waiting user where they stand."""
    ticket = place.ticket
    return (
        f"Not free yet: {_slices(ticket.count, ticket.profile)}. You wait as number {place.position} of "
        f"{place.waiting}. Keep this page open, or ask again soon: who does not loses the place."
    )


def count_by_profile(slices: Iterable[Slice]) -> Counter[str]:
    """Count slices per profile, in the order in which the profiles appear."""
    return Counter(piece.profile for piece in slices)


def _refusal(wish: Wish, held: Iterable[Lease], slices: Iterable[Slice]) -> str:
    """Return why the wish can never be granted as things are; empty when it can."""
    limit = wish.limit
    mine = [piece for lease in held if lease.user == waiting.user_of(wish.owner) for piece in lease.pieces]
    if wish.count > limit.slices or (limit.slices_together and wish.count > limit.slices_together):
        most = min(limit.slices, limit.slices_together or limit.slices)
        return (
            f"You asked for {_slices(wish.count)} and may hold {most} at once (limit {limit.name}); "
            "choose fewer."
        )
    if len(mine) + wish.count > limit.slices:
        return (
            f"You hold {_slices(len(mine))} already and may hold {limit.slices} at once "
            f"(limit {limit.name}); stop another notebook of yours first."
        )
    gpus = sum(piece.whole for piece in mine)
    if limit.gpus is not None and gpus + wish.count > limit.gpus and _is_whole(wish.profile, slices):
        return (
            f"You hold {gpus} whole GPU{'' if gpus == 1 else 's'} and may hold {limit.gpus} at once "
            f"(limit {limit.name}); choose fewer, or slices of a GPU."
        )
    there = count_by_profile(slices)[wish.profile]
    if not there:
        return (
            f"This machine has no GPU slice {wish.profile} any more; reload the page and choose another one."
        )
    if wish.count > there:
        return f"This machine has only {_slices(there, wish.profile)}; choose fewer."
    return ""


def _is_whole(profile: str, slices: Iterable[Slice]) -> bool:
    return any(piece.whole for piece in slices if piece.profile == profile)


def _slices(count: int, profile: str = "") -> str:
    return f"{count} GPU slice{'' if count == 1 else 's'} {profile}".rstrip()
