# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the running system whether leases, notebooks and slices agree.

``python -m gpufarm_hub.sharing.consistency LEASES`` says what does not, and exits with 1 then.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpufarm_hub.spawning import engines

from .leases import Leases
from .slices import list_slices


def problems(path: Path) -> list[str]:
    """Return what does not agree, one sentence each."""
    leases = Leases(path).all()
    if not leases:
        return []
    present = set(list_slices())
    found = [
        f"{lease.owner} holds {piece.uuid}, which is gone"
        for lease in leases
        for piece in lease.pieces
        if piece not in present
    ]
    found += [
        f"{lease.owner} holds {lease.uuids}, but {lease.unit} does not run"
        for lease in leases
        if engines.of(lease.unit).is_over(lease.unit)
    ]
    return found


if __name__ == "__main__":
    sys.exit("; ".join(problems(Path(sys.argv[1]))) or 0)
