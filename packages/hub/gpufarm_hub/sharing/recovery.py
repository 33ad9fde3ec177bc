# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that ended without the hub: it was down, the machine booted, or the GPU was partitioned anew."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Protocol

from gpufarm_hub.spawning import engines
from gpufarm_hub.spawning.engine import EngineError

from .desk import Desk
from .leases import Lease
from .slices import Gpus, read_gpus

# Seconds after which a lease is of a notebook that has started, or has failed to.
SETTLED = 10


class Log(Protocol):
    """The part of a logger that is used here."""

    def warning(self, message: str, *arguments: object) -> None:
        """Log a warning."""


def drop_ended(desk: Desk, log: Log) -> None:
    """Take back the leases of notebooks that do not run any more. Only while no notebook is being started."""
    _drop_over(desk, desk.leases.all(), log)


def drop_left(desk: Desk, held: list[Lease], active: Collection[str], log: Log) -> None:
    """Take back what the hub could not, for instance because the disk was full when a notebook ended.

    Args:
        desk: the desk.
        held: the leases, read before the hub was asked.
        active: owners of the notebooks that the hub runs, starts or stops.
        log: where it is told.
    """
    # The owner of a younger one may be about to take the same slice again, which would look the same.
    latest = datetime.now(UTC) - timedelta(seconds=SETTLED)
    left = [lease for lease in held if lease.owner not in active]
    _drop_over(desk, [lease for lease in left if datetime.fromisoformat(lease.taken) < latest], log)


def _drop_over(desk: Desk, leases: list[Lease], log: Log) -> None:
    # An engine may take its time, so it is asked before the lock is taken.
    over = [lease for lease in leases if _is_over(lease, log)]
    if not over:
        return
    for lease in desk.leases.drop(lambda lease: lease in over):
        desk.ended(lease)
        log.warning("Took back slice %s of %s: its notebook has ended", lease.uuids, lease.owner)


def _is_over(lease: Lease, log: Log) -> bool:
    try:
        return engines.of(lease.unit).is_over(lease.unit)
    except EngineError as error:
        log.warning("Keeping the lease of %s: %s", lease.owner, error)
        return False


def present_gpus(desk: Desk, log: Log) -> Gpus:
    """Return what the GPUs say; take back the leases of slices that are not there any more.

    A new slice may get the device nodes of the old one, so the notebook loses its devices first.

    Raises:
        GpuQueryError: NVML does not answer; the leases are as they were.
    """
    # In this order: a lease that is taken later may be of a slice that is newer than the list.
    held = desk.leases.all()
    gpus = read_gpus()
    for problem in gpus.reasons:
        log.warning("Slices of a GPU are given to nobody: %s", problem)
    gone = [lease for lease in held if any(map(gpus.is_gone, lease.pieces))]
    if not gone:
        return gpus
    # Under the lock, so that no notebook of the same name is started meanwhile.
    for lease in desk.leases.drop(lambda lease: lease in gone and is_revoked(lease, log)):
        desk.lost(lease)
        log.warning(
            "Dropped the lease of %s: slice %s (%s) is not there any more",
            lease.owner,
            lease.uuids,
            lease.pieces[0].profile,
        )
    return gpus


def is_revoked(lease: Lease, log: Log) -> bool:
    """Take the devices from the notebook of a lease; tell whether it has none now."""
    try:
        engine = engines.of(lease.unit)
        if not engine.is_over(lease.unit):
            engine.revoke_devices(lease.unit)
    except EngineError as error:
        log.warning("Keeping the lease of %s on a slice that is gone: %s", lease.owner, error)
        return False
    return True
