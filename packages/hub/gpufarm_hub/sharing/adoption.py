# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases from the notebooks that run: the file of the leases may be damaged, lost, or older than they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from gpufarm_hub.spawning import engines, notebooks
from gpufarm_hub.spawning.engine import EngineError
from gpufarm_hub.store import StoreError

from . import devices, recovery, shared
from .desk import Desk
from .devices import DeviceError
from .leases import Lease
from .recovery import Log
from .slices import GpuQueryError, Gpus, Slice, read_gpus


def at_hub_start(desk: Desk, log: Log) -> None:
    """Make the leases agree with the notebooks and slices that are there.

    A hub that cannot find out who holds what starts all the same, as users work in their notebooks; it hands
    out no slice before it knows (`agree`).
    """
    try:
        adopt_running(desk, log)
        recovery.drop_ended(desk, log)
        desk.leases.publish()
        desk.leases.keep_places()
        if desk.leases.all():
            recovery.present_gpus(desk, log)
    except (EngineError, GpuQueryError, StoreError) as error:
        log.warning("No GPU slice is handed out until this is over: %s", error)


def agree(desk: Desk, log: Log) -> Gpus:
    """Make the leases agree with the notebooks that run, before a slice is handed out.

    Returns:
        Readings of the GPUs of the machine.

    Raises:
        EngineError, GpuQueryError, StoreError: as `adopt_running`.
    """
    adopt_running(desk, log)
    return recovery.present_gpus(desk, log)


def adopt_running(desk: Desk, log: Log) -> None:
    """Give each running notebook a lease of the slices that it can reach, if it has another one or none.

    A notebook without a lease counts for no limit of a group, as the hub does not know its user's groups yet.

    Raises:
        EngineError, GpuQueryError: notebooks may hold slices without a lease, and nobody can tell which. No
            slice may be handed out then.
        StoreError: the file cannot be used.
    """
    damage = desk.leases.damage()
    known = not damage and desk.leases.are_known()
    held = {lease.unit: lease for lease in desk.leases.all()} if known else {}
    try:
        reach = {unit: keys for unit, keys in notebooks.reach().items() if keys}
    except EngineError as error:
        if not known:
            raise
        log.warning("Leases are kept as they are: %s", error)
        return
    odd = {unit: keys for unit, keys in reach.items() if not agrees(held.get(unit), keys)}
    try:
        gpus = read_gpus() if odd else Gpus([], frozenset())
    except GpuQueryError as error:
        if not held.keys() >= odd.keys():
            raise
        log.warning("Leases are kept as they are: %s", error)
        return
    if damage and (said := desk.leases.set_aside_if_damaged()):
        log.warning("%s. Users who waited for a slice must ask again", said)
    if odd or not known:
        leases = []
        uses = Counter(piece for keys in reach.values() for piece in reached(keys, gpus.slices))
        for unit, keys in odd.items():
            before = held.get(unit)
            if lease := _lease_of(desk, unit, keys, before, gpus, uses, log):
                leases.append((before, lease))
        for lease in desk.adopt(leases):
            log.warning("%s runs with slice %s: its lease says so again", lease.owner, lease.uuids)
    _part(desk, reach, log)


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


def unexplained(keys: Collection[str], pieces: Iterable[Slice]) -> set[str]:
    """Return the keys that belong to none of these slices."""
    return set(keys).difference(*({piece.uuid, *_nodes(piece)} for piece in pieces))


def agrees(lease: Lease | None, keys: Collection[str]) -> bool:
    """Tell whether a lease has exactly the slices that a notebook with these keys can reach."""
    if lease is None:
        return not keys
    return len(reached(keys, lease.pieces)) == len(lease.pieces) and not unexplained(keys, lease.pieces)


def _lease_of(
    desk: Desk,
    unit: str,
    keys: Collection[str],
    before: Lease | None,
    gpus: Gpus,
    uses: Mapping[Slice, int],
    log: Log,
) -> Lease | None:
    """Return the lease that a notebook must have; None where there is none to write down.

    Args:
        desk: the desk.
        unit: the notebook.
        keys: what it can reach.
        before: its present lease.
        gpus: readings of the GPUs.
        uses: how many notebooks can reach each slice.
        log: where it is told.
    """
    if before and not set(gpus.slices).issuperset(before.pieces):
        return None  # recovery.present_gpus ends it and tells the user
    engine = engines.of(unit)
    pieces = reached(keys, gpus.slices)
    if not pieces or unexplained(keys, pieces):
        if not gpus.all_answered:
            log.warning("%s may have slices of a GPU that does not answer; these are given to nobody", unit)
            return None
        # Nodes of slices that are gone may become those of new ones.
        engine.revoke_devices(unit)
        log.warning("Took the GPU from %s: it reached slices that are not there any more", unit)
        return None
    if before:
        return replace(before, pieces=tuple(pieces))
    owner = engine.owner_of(unit)
    share = desk.limit_of(owner.partition("/")[0], ()).name
    now = datetime.now(UTC).isoformat(timespec="seconds")
    # A notebook that is the only one on its slice has it alone: nobody knows whether it accepted others.
    together = any(uses[piece] > 1 for piece in pieces)
    accepted = shared.number(desk.shared, pieces[0].profile) if together else 1
    return Lease(owner, unit, tuple(pieces), now, share, notebooks=accepted)


def _part(desk: Desk, reach: Collection[str], log: Log) -> None:
    """Leave a slice that more notebooks can reach than accept that to those who have had it longer."""
    running = sorted((lease for lease in desk.leases.all() if lease.unit in reach), key=lambda one: one.taken)
    kept, late = list[Lease](), list[Lease]()
    for lease in running:
        (kept if lease.goes_with(kept) else late).append(lease)
    if not late:
        return
    for lease in desk.leases.drop(lambda lease: lease in late and recovery.is_revoked(lease, log)):
        desk.lost(lease, "another notebook had it already")
        log.warning("Took slice %s from %s: another notebook had it already", lease.uuids, lease.owner)
