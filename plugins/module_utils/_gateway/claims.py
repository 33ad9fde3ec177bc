# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assign names, paths and ports that several apps ask for. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .routes import Route


@dataclass
class Settled:
    """The outcome.

    Attributes:
        routes: those that are served, by name.
        problems: sentences by app.
        holders: name of the route that has each claim from now on.
    """

    routes: list[Route] = field(default_factory=list)
    problems: dict[str, list[str]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)


def settle(routes: Sequence[Route], holders: Mapping[str, str]) -> Settled:
    """Give every name, path and port to one route.

    An app keeps its claim while it asks for it, so no other app takes over its users by asking for its name.
    Among newcomers the id decides, so that two gateways decide alike.

    Args:
        routes: of all apps.
        holders: as an earlier call returned them.

    Returns:
        The decision.
    """
    asking = {(claim, route.name) for route in routes for claim in route.claims}
    owners = {claim: name for claim, name in holders.items() if (claim, name) in asking}
    found = Settled()
    for route in sorted(routes, key=lambda one: (one.app, one.index)):
        lost = [claim for claim in route.claims if owners.get(claim, route.name) != route.name]
        if lost:
            text = f"{lost[0].rstrip('/')} is taken by backend {owners[lost[0]]}"
            found.problems.setdefault(route.app, []).append(
                f"{route.app}, port {route.index} is not served: {text}."
            )
            continue
        found.routes.append(route)
        owners |= dict.fromkeys(route.claims, route.name)
    found.routes.sort(key=lambda one: one.name)
    found.holders = {claim: route.name for route in found.routes for claim in route.claims}
    return found
