# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the running system whether leases, notebooks, device rules and the use of slices agree.

``python -m gpufarm_hub.sharing.consistency LEASES`` says what does not, and exits with 1 then. The hub
repairs what it can before it hands out a slice, and every half minute (`adoption`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gpufarm_hub.spawning import engines, mps, notebooks

from .adoption import agrees, reached, unexplained
from .gpu_use import processes
from .leases import Lease, Leases
from .slices import Gpus, read_gpus


def problems(path: Path) -> list[str]:
    """Return what does not agree, one sentence each."""
    stored = Leases(path)
    damage = stored.damage()
    leases = [] if damage else stored.all()
    reach = notebooks.reach()
    found = [damage] if damage else []
    if not leases and not any(reach.values()):
        return found
    gpus = read_gpus()
    found += _of_leases(leases, gpus)
    found += _of_devices(leases, reach, gpus)
    found += _of_use(leases, processes([piece.uuid for piece in gpus.slices]))
    return found


def _of_leases(leases: Iterable[Lease], gpus: Gpus) -> Iterator[str]:
    """Compare the file with itself, with the slices that there are, and with what runs."""
    for lease in leases:
        for piece in lease.pieces:
            if gpus.is_gone(piece):
                yield f"{lease.owner} holds {piece.uuid}, which is gone"
        if engines.of(lease.unit).is_over(lease.unit):
            yield f"{lease.owner} holds {lease.uuids}, but {lease.unit} does not run"
    before = list[Lease]()
    for lease in leases:
        if not lease.goes_with(before):
            owners = [other.owner for other in before if other.overlaps(lease)]
            yield f"{' and '.join([*owners, lease.owner])} all hold {lease.uuids}"
        before.append(lease)


def _of_devices(leases: Iterable[Lease], reach: Mapping[str, frozenset[str]], gpus: Gpus) -> Iterator[str]:
    """Compare the device rules of what runs with the file, and with one another."""
    held = {lease.unit: lease for lease in leases}
    users: dict[str, list[str]] = {}
    for unit, keys in reach.items():
        pieces = [piece.uuid for piece in reached(keys, gpus.slices)]
        for uuid in pieces:
            users.setdefault(uuid, []).append(unit)
        if not agrees(held.get(unit), keys):
            opens = [*pieces, "a slice that is gone"] if unexplained(keys, gpus.slices) else pieces
            leased = held[unit].uuids if unit in held else "none"
            yield f"{unit} can open {','.join(opens) or 'none'}, its lease has {leased}"
    for uuid, units in users.items():
        if len(units) > min(held[unit].notebooks if unit in held else 1 for unit in units):
            yield f"{' and '.join(sorted(units))} can all open {uuid}"


def _of_use(leases: Iterable[Lease], used: Mapping[str, Iterable[int]]) -> Iterator[str]:
    """Compare the processes that NVML shows on slices with those of their holders."""
    holders: dict[str, list[Lease]] = {}
    for lease in leases:
        for piece in lease.pieces:
            holders.setdefault(piece.uuid, []).append(lease)
    for uuid, held in holders.items():
        ours = frozenset[int]().union(*(engines.of(lease.unit).processes(lease.unit) for lease in held))
        owners = " and ".join(lease.owner for lease in held)
        units = " and ".join(lease.unit for lease in held)
        for pid in sorted(set(used.get(uuid, ())) - ours):
            if mps.is_service(pid):
                continue
            yield f"process {pid} uses {uuid} of {owners} and is not in {units}"


def main() -> str | int:
    """Return what does not agree, or 0."""
    return "; ".join(problems(Path(sys.argv[1]))) or 0


if __name__ == "__main__":
    sys.exit(main())
