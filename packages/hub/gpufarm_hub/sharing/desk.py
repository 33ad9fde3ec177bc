# SPDX-License-Identifier: GPL-3.0-or-later
"""Where slices are handed out and given back: the leases, what users are told of them, and the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gpufarm_hub.spawning import engines
from gpufarm_hub.spawning.engine import Engine
from gpufarm_hub.store import JsonStore

from . import answers, audit, holders, keeping, limits, shared
from .leases import Lease, Leases
from .limits import Limit
from .notices import Notices
from .shared import SharedProfile
from .slices import Slice
from .timing import DECISION, WAIT
from .turns import Place
from .waiting import SliceRequest, Ticket


@dataclass(frozen=True)
class Desk:
    """The desk of this machine.

    Attributes:
        leases: who holds and who waits.
        notices: what users are told.
        use: what `keeper` has measured last.
        audit_file: the audit log.
        limits: what users may have.
        spawner: name of the engine of notebooks that are started now.
        shared: which slices several notebooks may hold at once.
    """

    leases: Leases
    notices: Notices
    use: JsonStore
    audit_file: Path
    limits: list[Limit]
    spawner: str = field(default_factory=engines.default)
    shared: Sequence[SharedProfile] = ()

    @property
    def engine(self) -> Engine:
        """The engine of notebooks that are started now."""
        return engines.called(self.spawner)

    def limit_of(self, user: str, groups: Iterable[str]) -> Limit:
        """Return what a user in these groups may have."""
        return limits.limit_of(user, groups, self.limits)

    def enter(self, request: SliceRequest, slices: list[Slice]) -> Place:
        """Do as `Leases.enter`, and write down who waits."""
        with DECISION.labels("enter").time():
            place = self.leases.enter(request, slices)
        self._record_place(place)
        return place

    def take(self, request: SliceRequest, unit: str, slices: list[Slice]) -> Lease | Place:
        """Do as `Leases.take`, and write it down."""
        with DECISION.labels("take").time():
            taken = self.leases.take(request, unit, slices)
        if isinstance(taken, Lease):
            WAIT.observe(taken.waited)
            self._record_lease("taken", taken)
        else:
            self._record_place(taken)
        return taken

    def give_back(self, owner: str) -> Lease | None:
        """Give back what the owner holds, if anything; return it."""
        lease = self.leases.release(owner)
        if lease:
            self._record_lease("returned", lease)
        return lease

    def leave(self, owner: str) -> bool:
        """Take the owner out of the queue; tell whether they were in it."""
        left = self.leases.leave(owner)
        if left:
            self.record("left", owner)
        return left

    def remove(self, owner: str, by: str) -> bool:
        """Take the owner out of the queue on behalf of somebody else; tell whether they were in it."""
        removed = self.leases.leave(owner)
        if removed:
            self.record("removed", owner, by=by)
            self.notices.tell(owner, answers.removed(by))
        return removed

    def lost(self, lease: Lease, why: str = "the machine was partitioned anew") -> None:
        """Write down a lease that ended while its notebook runs, and tell its user."""
        self._record_lease("lost", lease)
        self.notices.tell(
            lease.owner,
            f"Your GPU slice {lease.pieces[0].profile} is gone: {why}. "
            "Save your work if the notebook still runs, stop it and start it again with another slice.",
        )

    def adopt(self, leases: Iterable[tuple[Lease | None, Lease]]) -> list[Lease]:
        """Do as `Leases.adopt`, and write it down."""
        adopted = self.leases.adopt(leases)
        for lease in adopted:
            self._record_lease("adopted", lease)
        return adopted

    def ended(self, lease: Lease) -> None:
        """Write down a lease whose notebook had ended without the hub."""
        self._record_lease("returned", lease)

    def record(self, event: str, owner: str, **details: object) -> None:
        """Add a line to the audit log."""
        audit.record(self.audit_file, event, owner, **details)

    def _record_place(self, place: Place) -> None:
        ticket = place.ticket
        if not place.called and ticket.seen <= ticket.since:  # the first time that it is asked for
            self.record("waiting", ticket.owner, **_asked(ticket))

    def _record_lease(self, event: str, lease: Lease) -> None:
        uuids = [piece.uuid for piece in lease.pieces]
        self.record(
            event,
            lease.owner,
            profile=lease.pieces[0].profile,
            slices=uuids,
            notebooks=lease.notebooks,
            since=lease.taken,
        )


def missed(notices: Notices, audit_file: Path, ticket: Ticket, when: float) -> None:
    """Write down that a user was called and did not come, and tell them."""
    audit.record(audit_file, "missed", ticket.owner, **_asked(ticket))
    notices.tell(ticket.owner, answers.missed(ticket, keeping.in_words(when)))


def _asked(ticket: Ticket) -> dict[str, object]:
    return {"profile": ticket.profile, "count": ticket.count, "notebooks": ticket.notebooks}


def from_settings(settings: Mapping[str, Any]) -> Desk:
    """Return the desk of the role's settings; its keys are those of the template ``settings.json.j2``."""
    state = Path(settings["state_folder"])
    notices = Notices(state / "notices.json")
    audit_file = Path(settings["log_folder"]) / "audit.jsonl"
    return Desk(
        leases=Leases(
            state / "leases.json",
            patience=60 * settings["queue_patience_minutes"],
            claim=60 * settings["queue_claim_minutes"],
            publish=partial(holders.publish, Path(settings["holders_file"])),
            missed=partial(missed, notices, audit_file),
        ),
        notices=notices,
        use=JsonStore(state / "use.json"),
        audit_file=audit_file,
        limits=limits.read(settings["limits"]),
        spawner=settings["spawner"],
        shared=shared.read(settings["shared_slices"]),
    )
