# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell the other programs of the machine who holds slices, so that nobody partitions them away.

The form of the file is that of the role mig (its README, "Services that use slices").
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from gpufarm_hub import files

from .leases import Lease

SERVICE = "jupyterhub.service"


def publish(path: Path, leases: Iterable[Lease]) -> None:
    """Write down who holds what; only root can read it.

    Args:
        path: the file, in a folder that goes with a reboot, as the slices do.
        leases: all of them.

    Raises:
        OSError: the file is as it was.
    """
    path.parent.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    holders = [_entry(lease) for lease in leases]
    files.replace(path, json.dumps({"service": SERVICE, "holders": holders}, indent=1).encode())


def _entry(lease: Lease) -> dict[str, object]:
    user, _slash, server = lease.owner.partition("/")
    entry: dict[str, object] = {
        "who": f"the notebook {server} of {user}" if server else f"the notebook of {user}",
        "slices": [piece.uuid for piece in lease.pieces],
    }
    if lease.unit.endswith(".service"):  # not a unit of systemd's when it is a container
        entry["unit"] = lease.unit
    return entry
