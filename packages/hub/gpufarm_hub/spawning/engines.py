# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines that this hub knows."""

from __future__ import annotations

from pathlib import Path

from . import units
from .engine import Engine

# There while this hub may have notebooks in containers; without it Docker, if there is one, is not asked.
NETWORK = Path("/etc/systemd/system/jupyterhub-network.service")


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


def in_use() -> list[Engine]:
    """Return the engines that may run notebooks of this hub."""
    return [called("systemd"), *([called("docker")] if NETWORK.exists() else [])]
