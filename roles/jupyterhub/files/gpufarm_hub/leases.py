# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds which GPU slice. A notebook holds one slice at most, and a slice has one holder at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .slices import Slice
from .store import JsonStore


class NoFreeSliceError(Exception):
    """All slices of the wanted profile are held, or there is none; the text is for the user."""


@dataclass(frozen=True)
class Lease:
    """A slice in the hands of one notebook.

    Attributes:
        owner: user and server name, ``alice/`` for the default server.
        unit: systemd unit of the notebook.
        piece: the slice.
        taken: ISO 8601 time.
    """

    owner: str
    unit: str
    piece: Slice
    taken: str


def _load(content: dict[str, Any]) -> list[Lease]:
    return [
        Lease(owner=owner, unit=entry["unit"], piece=Slice(**entry["slice"]), taken=entry["taken"])
        for owner, entry in content.items()
    ]


class Leases:
    """The leases of this machine.

    Args:
        path: the file they are kept in.
    """

    def __init__(self, path: Path) -> None:
        self._store = JsonStore(path)

    def all(self) -> list[Lease]:
        """Return every lease."""
        return _load(self._store.read())

    def free(self, slices: Iterable[Slice]) -> list[Slice]:
        """Return the slices that no lease touches: a hint for the form, the decision is taken by `take`."""
        held = [lease.piece for lease in self.all()]
        return [piece for piece in slices if not any(piece.overlaps(other) for other in held)]

    def take(self, owner: str, unit: str, profile: str, slices: list[Slice]) -> Lease:
        """Give the owner the first free slice of a profile.

        The caller has made sure that no notebook of this owner runs; what it held is given back in any case.

        Raises:
            NoFreeSliceError: no such slice is free.
        """
        with self._store.change() as content:
            content.pop(owner, None)
            held = [lease.piece for lease in _load(content)]
            wanted = [piece for piece in slices if piece.profile == profile]
            for piece in wanted:
                if not any(piece.overlaps(other) for other in held):
                    taken = datetime.now(UTC).isoformat(timespec="seconds")
                    content[owner] = {"unit": unit, "slice": asdict(piece), "taken": taken}
                    return Lease(owner, unit, piece, taken)
        if not wanted:
            raise NoFreeSliceError(
                f"This machine has no GPU slice {profile} any more; reload the page and choose another one."
            )
        raise NoFreeSliceError(
            f"No GPU slice {profile} is free, all {len(wanted)} are in use; "
            "choose another one or none, or try again later."
        )

    def release(self, owner: str) -> Lease | None:
        """Give back what the owner holds, if anything; return it."""
        with self._store.change() as content:
            held = [lease for lease in _load(content) if lease.owner == owner]
            content.pop(owner, None)
        return held[0] if held else None

    def drop(self, stale: Callable[[Lease], bool]) -> list[Lease]:
        """Take away every lease that ``stale`` says is over, under the lock; return those."""
        with self._store.change() as content:
            dropped = [lease for lease in _load(content) if stale(lease)]
            for lease in dropped:
                del content[lease.owner]
        return dropped


def count_by_profile(slices: Iterable[Slice]) -> Counter[str]:
    """Count slices per profile, in the order in which the profiles appear."""
    return Counter(piece.profile for piece in slices)
