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

    An app keeps its claim while it asks for it, so no other app takes over its users by asking for its name,
    nor, in another group, for a path below it.
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
        reason = next(filter(None, (_refusal(claim, route.name, owners) for claim in route.claims)), "")
        if reason:
            found.problems.setdefault(route.app, []).append(
                f"{route.app}, port {route.index} is not served: {reason}."
            )
            continue
        found.routes.append(route)
        owners |= dict.fromkeys(route.claims, route.name)
    found.routes.sort(key=lambda one: one.name)
    found.holders = {claim: route.name for route in found.routes for claim in route.claims}
    return found


def _refusal(claim: str, name: str, owners: Mapping[str, str]) -> str:
    """Return why a route cannot have a claim, as the end of a sentence; empty if it can."""
    if claim in owners:
        taken = f"{claim.rstrip('/')} is taken by backend {owners[claim]}"
        return "" if owners[claim] == name else taken
    for place, owner in owners.items():
        # A request goes to the longest place, so the owner of this one would lose some, with their cookies.
        if claim.startswith(place) and place.endswith("/") and _group(owner) != _group(name):
            below = f"{claim.rstrip('/')} is below {place.rstrip('/')}"
            return f"{below}, which backend {owner} of another group has"
    return ""


def _group(name: str) -> str:
    """Return the first part of an app's id, from the name of its backend."""
    return name.partition("_")[0]
