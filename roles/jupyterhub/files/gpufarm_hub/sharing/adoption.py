# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases from the notebooks that run: the file of the leases may be damaged, lost, or older than they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from gpufarm_hub.spawning import engines, notebooks
from gpufarm_hub.spawning.engine import EngineError

from . import devices
from .desk import Desk
from .devices import DeviceError
from .leases import Lease
from .recovery import Log
from .slices import GpuQueryError, Slice, list_slices


def adopt_running(desk: Desk, log: Log) -> None:
    """Give each running notebook a lease of the slices that it can reach, if it has another one or none.

    A notebook without a lease counts for no limit of a group, as the hub does not know its user's groups yet.

    Raises:
        EngineError, GpuQueryError: notebooks may hold slices without a lease, and nobody can tell which. No
            slice may be handed out then.
        StoreError: the file cannot be used.
    """
    damage = desk.leases.set_aside_if_damaged()
    if damage:
        log.warning("%s. Users who waited for a slice must ask again", damage)
    held = {lease.unit: lease for lease in desk.leases.all()}
    try:
        opens = {unit: keys for unit in notebooks.running() if (keys := engines.of(unit).opens(unit))}
    except EngineError as error:
        if not desk.leases.are_stored():
            raise
        log.warning("Leases are kept as they are: %s", error)
        return
    odd = {unit: keys for unit, keys in opens.items() if not _agrees(held.get(unit), keys)}
    if not odd:
        return
    try:
        slices = list_slices()
    except GpuQueryError as error:
        if not held.keys() >= odd.keys():
            raise
        log.warning("Leases are kept as they are: %s", error)
        return
    for unit, keys in odd.items():
        _adopt(desk, unit, keys, held.get(unit), slices, log)


def reached(keys: Collection[str], slices: Iterable[Slice]) -> list[Slice]:
    """Return the slices that somebody with these keys can reach.

    Args:
        keys: paths of device nodes, or UUIDs.
        slices: those to choose from.
    """
    return [piece for piece in slices if piece.uuid in keys or _nodes(piece) <= set(keys)]


def _nodes(piece: Slice) -> frozenset[str]:
    try:
        return devices.keys_of(piece)
    except DeviceError:
        return frozenset([piece.uuid])  # a slice that the driver does not know is reached through no node


def _unexplained(keys: Collection[str], pieces: Iterable[Slice]) -> set[str]:
    return set(keys).difference(*({piece.uuid, *_nodes(piece)} for piece in pieces))


def _agrees(lease: Lease | None, keys: Collection[str]) -> bool:
    if lease is None:
        return False
    return len(reached(keys, lease.pieces)) == len(lease.pieces) and not _unexplained(keys, lease.pieces)


def _adopt(
    desk: Desk, unit: str, keys: Collection[str], lease: Lease | None, slices: list[Slice], log: Log
) -> None:
    if lease and not set(slices).issuperset(lease.pieces):
        return  # recovery.present_slices ends it and tells the user
    engine = engines.of(unit)
    pieces = reached(keys, slices)
    if not pieces or _unexplained(keys, pieces):
        # Nodes of slices that are gone may become those of new ones.
        engine.revoke_devices(unit)
        log.warning("Took the GPU from %s: it reached slices that are not there any more", unit)
        return
    if lease:
        lease = replace(lease, pieces=tuple(pieces))
    else:
        owner = engine.owner_of(unit)
        share = desk.limit_of(owner.partition("/")[0], ()).name
        now = datetime.now(UTC).isoformat(timespec="seconds")
        lease = Lease(owner, unit, tuple(pieces), now, share)
    desk.adopt(lease)
    log.warning("%s runs with slice %s: its lease says so again", lease.owner, lease.uuids)
