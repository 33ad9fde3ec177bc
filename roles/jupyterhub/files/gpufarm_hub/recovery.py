# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that ended without the hub: it was down, the machine booted, or the GPU was partitioned anew."""

from __future__ import annotations

from typing import Protocol

from . import units
from .leases import Lease, Leases
from .slices import GpuQueryError, Slice, list_slices


class Log(Protocol):
    """The part of a logger that is used here."""

    def warning(self, message: str, *arguments: object) -> None:
        """Log a warning."""


def drop_ended(leases: Leases, log: Log) -> None:
    """Take back the leases of notebooks that do not run any more. Only while no notebook is being started."""

    def ended(lease: Lease) -> bool:
        try:
            return units.is_over(lease.unit)
        except units.UnitError as error:
            log.warning("Keeping the lease of %s: %s", lease.owner, error)
            return False

    for lease in leases.drop(ended):
        log.warning("Took back slice %s of %s: its notebook has ended", lease.piece.uuid, lease.owner)


def drop_vanished(leases: Leases, slices: list[Slice], log: Log) -> None:
    """Take back the leases of slices that are not there any more.

    A new slice may get the device nodes of the old one, so the notebook loses its devices first.
    """
    present = set(slices)

    def vanished(lease: Lease) -> bool:
        if lease.piece in present:
            return False
        try:
            if not units.is_over(lease.unit):
                units.revoke_devices(lease.unit)
        except units.UnitError as error:
            log.warning("Keeping the lease of %s on a slice that is gone: %s", lease.owner, error)
            return False
        return True

    for lease in leases.drop(vanished):
        log.warning(
            "Dropped the lease of %s: slice %s (%s) is not there any more",
            lease.owner,
            lease.piece.uuid,
            lease.piece.profile,
        )


def at_hub_start(leases: Leases, log: Log) -> None:
    """Make the leases agree with the units and slices that are there."""
    drop_ended(leases, log)
    if not leases.all():
        return
    try:
        drop_vanished(leases, list_slices(), log)
    except GpuQueryError as error:
        log.warning("Leases are kept as they are: %s", error)
