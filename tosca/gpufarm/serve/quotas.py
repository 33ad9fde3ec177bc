# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a user and a group may have at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Quota:
    """Largest numbers; None for no limit."""

    deployments: int | None = None
    machines: int | None = None

    def exceeded(self, deployments: int, machines: int) -> str:
        """Compare numbers with the limits.

        Args:
            deployments: number that there would be.
            machines: number that they would hold.

        Returns:
            A phrase such as ``3 of at most 2 machines``; empty if they fit.
        """
        if self.deployments is not None and deployments > self.deployments:
            return f"{deployments} of at most {self.deployments} deployments"
        if self.machines is not None and machines > self.machines:
            return f"{machines} of at most {self.machines} machines"
        return ""


@dataclass(frozen=True)
class Quotas:
    """Limits of each user and of each group.

    Attributes:
        user: of each user.
        group: of each group without limits of its own.
        groups: limits of groups, by name.
    """

    user: Quota = Quota()
    group: Quota = Quota()
    groups: Mapping[str, Quota] = field(default_factory=dict)

    def of_group(self, name: str) -> Quota:
        """Find the limits of a group.

        Args:
            name: of the group.

        Returns:
            The limits.
        """
        return self.groups.get(name, self.group)

    def limits(self, name: str) -> bool:
        """Tell whether a group has limits.

        Args:
            name: of the group.

        Returns:
            True if it has.
        """
        return self.of_group(name) != Quota()
