# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that ended without the hub: it was down, the machine booted, or the GPU was partitioned anew."""

from __future__ import annotations

from typing import Protocol

from . import engines
from .desk import Desk
from .engine import EngineError
from .leases import Lease
from .slices import GpuQueryError, Slice, list_slices


class Log(Protocol):
    """The part of a logger that is used here."""

    def warning(self, message: str, *arguments: object) -> None:
        """Log a warning."""


def drop_ended(desk: Desk, log: Log) -> None:
    """Take back the leases of notebooks that do not run any more. Only while no notebook is being started."""

    def ended(lease: Lease) -> bool:
        try:
            return engines.of(lease.unit).is_over(lease.unit)
        except EngineError as error:
            log.warning("Keeping the lease of %s: %s", lease.owner, error)
            return False

    for lease in desk.leases.drop(ended):
        desk.ended(lease)
        log.warning("Took back slice %s of %s: its notebook has ended", lease.uuids, lease.owner)


def present_slices(desk: Desk, log: Log) -> list[Slice]:
    """Return the slices of the machine; take back the leases of those that are not there any more.

    A new slice may get the device nodes of the old one, so the notebook loses its devices first.

    Raises:
        GpuQueryError: NVML does not answer; the leases are as they were.
    """
    # In this order: a lease that is taken later may be of a slice that is newer than the list.
    held = desk.leases.all()
    slices = list_slices()
    present = set(slices)

    def vanished(lease: Lease) -> bool:
        if lease not in held or present.issuperset(lease.pieces):
            return False
        try:
            engine = engines.of(lease.unit)
            if not engine.is_over(lease.unit):
                engine.revoke_devices(lease.unit)
        except EngineError as error:
            log.warning("Keeping the lease of %s on a slice that is gone: %s", lease.owner, error)
            return False
        return True

    for lease in desk.leases.drop(vanished):
        desk.lost(lease)
        log.warning(
            "Dropped the lease of %s: slice %s (%s) is not there any more",
            lease.owner,
            lease.uuids,
            lease.pieces[0].profile,
        )
    return slices


def at_hub_start(desk: Desk, log: Log) -> None:
    """Make the leases agree with the units and slices that are there."""
    drop_ended(desk, log)
    desk.leases.publish()
    desk.leases.keep_places()
    if not desk.leases.all():
        return
    try:
        present_slices(desk, log)
    except GpuQueryError as error:
        log.warning("Leases are kept as they are: %s", error)
