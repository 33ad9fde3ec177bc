# SPDX-License-Identifier: GPL-3.0-or-later
"""Interface to engines, which run notebooks: a service manager, containers, or a batch system.

A notebook is known by its unit, a name that the engine gives out and that is kept in the lease. `engines`
finds the engine of a unit, so leases stay right when a hub is told to use another engine from now on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


class EngineError(Exception):
    """The engine did not answer; nothing is known about the notebook."""


@dataclass(frozen=True)
class Death:
    """How a notebook ended that nobody stopped.

    Attributes:
        cause: ``memory`` if it needed more than it could have, ``signal`` or ``status`` if its program was
            ended by a signal or ended with an error, ``restart`` if the machine was restarted. Of a batch
            system also: ``time`` if its time was over, ``node`` if its machine failed, ``preempted`` if
            another job needed its resources, ``administrator`` or ``cancelled`` if an administrator or
            somebody unknown took it out, ``home`` if its machine could not write into the home.
        number: of the signal, or the status; 0 for other causes.
    """

    cause: Literal[
        "memory",
        "signal",
        "status",
        "restart",
        "time",
        "node",
        "preempted",
        "administrator",
        "cancelled",
        "home",
    ]
    number: int = 0


class Engine(Protocol):
    """An engine runs notebooks. Every function may raise `EngineError`, except `name_of` and `owner_of`."""

    def name_of(self, owner: str) -> str:
        """Return the unit of a notebook; no two notebooks share one.

        It begins with the name of the engine and a colon, except units of the default engine.

        Args:
            owner: user and server name, ``alice/`` for the default server.
        """

    def owner_of(self, unit: str) -> str:
        """Return the owner of a notebook's unit: the opposite of `name_of`."""

    def running(self) -> list[str]:
        """Return the units of all notebooks that are not over."""

    def reach(self) -> dict[str, frozenset[str]]:
        """Return, for each unit that is not over, what opens GPUs for it: paths of device nodes, or UUIDs."""

    def processes(self, unit: str) -> frozenset[int]:
        """Return the process ids of a unit, as this machine numbers them."""

    def is_over(self, unit: str) -> bool:
        """Tell whether no process of the unit is left; a unit that is still stopping is not over."""

    def death(self, unit: str) -> Death | None:
        """Return how a unit that is over has failed; None if it did not, or if that is forgotten."""

    def stop(self, unit: str) -> None:
        """Stop the unit, wait until it is over, and forget how it ended."""

    def cpu_seconds(self, unit: str) -> float | None:
        """Return the seconds of CPU time that the unit's processes have taken; None where nobody counts."""

    def resumable(self) -> list[str]:
        """Return the units that a start of the same notebook takes up again, for instance as they wait."""

    def revoke_devices(self, unit: str) -> None:
        """Make sure that no process of a running unit uses a GPU that was given to it."""
