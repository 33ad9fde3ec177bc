# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines that this hub knows."""

from __future__ import annotations

from . import units
from .engine import Engine


def called(name: str) -> Engine:
    """Return an engine by its name, a value of the role's variable ``jupyterhub_spawner``."""
    if name == "docker":
        from . import containers  # loads the library of Docker, which other hubs do without

        return containers
    return units


def of(unit: str) -> Engine:
    """Return the engine that runs a unit.

    Args:
        unit: as one of the engines has named it (`Engine.name_of`).
    """
    return called("docker" if unit.startswith("docker:") else "systemd")
