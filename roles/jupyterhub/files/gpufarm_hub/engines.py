# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines that this hub knows."""

from __future__ import annotations

from . import units
from .engine import Engine

# Values of the role's variable ``jupyterhub_spawner``.
ENGINES: dict[str, Engine] = {"systemd": units}


def of(unit: str) -> Engine:
    """Return the engine that runs a unit.

    Args:
        unit: as one of the engines has named it (`Engine.name_of`).
    """
    return units
