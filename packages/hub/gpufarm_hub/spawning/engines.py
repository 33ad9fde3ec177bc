# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines that this hub knows: entry points of the group ``gpufarm_hub.engines``.

An engine is loaded when it is asked, as a hub does without the libraries of engines that it does not use.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from .engine import Engine

# The role writes a file with the name of each engine but the default one that may have notebooks here.
IN_USE = Path("/etc/jupyterhub/engines")


@cache
def default() -> str:
    """Return the name of the engine that every machine has; its units have no prefix."""
    (name,) = entry_points(group="gpufarm_hub.default_engine").names
    return name


@cache
def called(name: str) -> Engine:
    """Return an engine by its name, a value of the role's variable ``jupyterhub_spawner``."""
    engine: Engine = entry_points(group="gpufarm_hub.engines")[name].load()
    return engine


def of(unit: str) -> Engine:
    """Return the engine that runs a unit.

    Args:
        unit: as one of the engines has named it (`Engine.name_of`).
    """
    name = unit.partition(":")[0]
    return called(name if name in entry_points(group="gpufarm_hub.engines").names else default())


def in_use() -> list[Engine]:
    """Return the engines that may run notebooks of this hub."""
    others = sorted(path.name for path in IN_USE.glob("*"))
    return [called(name) for name in (default(), *others)]
