# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices on the hub's pages: a page for administrators, and the REST API behind all pages.

Stopping a notebook and thereby releasing its slices is the hub's own ``DELETE /users/{name}/server``.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.scopes import Scope, needs_scope
from tornado import web

from gpufarm_hub.sharing import health
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.leases import Lease
from gpufarm_hub.sharing.slices import GpuQueryError, Gpus, Slice, count_by_profile, read_gpus
from gpufarm_hub.sharing.turns import Claim, Place
from gpufarm_hub.sharing.waiting import Held, user_of

PREFIX = r"/api/gpufarm"


def handlers(desk: Desk) -> list[tuple[str, type[BaseHandler], dict[str, Any]]]:
    """Return the handlers with their paths below the hub's prefix."""
    ours = {"desk": desk}
    server = r"/users/(?P<user_name>[^/]+)/queue/(?P<server_name>[^/]*)"
    return [
        (PREFIX + r"/slices", SlicesHandler, ours),
        (PREFIX + server, QueueHandler, ours),
        (PREFIX + r"/users/(?P<user_name>[^/]+)/notices", NoticesHandler, ours),
        (r"/slices", SlicesPage, ours),
    ]


async def _gpus() -> Gpus:
    try:
        return await asyncio.to_thread(read_gpus)
    except GpuQueryError as error:
        raise web.HTTPError(503, "The GPUs of this machine do not answer.") from error


async def _problems(gpus: Gpus) -> dict[str, Any]:
    """Return what administrators are told: why slices are given to nobody, and why GPUs are not checked."""
    verdicts = await asyncio.to_thread(health.read)
    return {"problems": gpus.reasons, "health_unknown": verdicts.unknown}


def _name(owner: str) -> dict[str, str]:
    user, _slash, server = owner.partition("/")
    return {"user": user, "server": server}


def describe_place(place: Place) -> dict[str, Any]:
    """Return a place in the queue as the API tells it."""
    ticket = place.ticket
    return {
        **_name(ticket.owner),
        "profile": ticket.profile,
        "count": ticket.count,
        "notebooks": ticket.notebooks,
        "since": ticket.since,
        "position": place.position,
        "waiting": place.waiting,
        "called": place.called,
        "until": place.claim.until if place.claim else None,
        "likely": place.likely if math.isfinite(place.likely) else None,
    }


def _has(held: Held, piece: Slice) -> bool:
    return any(one.uuid == piece.uuid for one in held.pieces)


def describe_slices(
    slices: Iterable[Slice],
    leases: Iterable[Lease],
    claims: Iterable[Claim],
    used: dict[str, Any],
    may_see: Callable[[str], bool],
) -> list[dict[str, Any]]:
    """Return the slices as the API tells them, without holders whom the asker may not see."""
    leases, claims = list(leases), list(claims)
    told = []
    for piece in slices:
        holders = [lease for lease in leases if _has(lease, piece)]
        kept = [claim for claim in claims if _has(claim, piece)]
        users: list[Held] = [*holders, *kept]
        told.append(
            {
                "uuid": piece.uuid,
                "profile": piece.profile,
                "gpu": piece.gpu,
                "memory": piece.memory,
                "held": bool(holders),
                "notebooks": min((one.notebooks for one in users), default=1),
                "holders": [
                    {**_name(lease.owner), "since": lease.taken, "use": used.get(lease.owner)}
                    for lease in holders
                    if may_see(lease.user)
                ],
                "kept": [
                    {
                        "until": claim.until,
                        "for": _name(claim.owner) if may_see(user_of(claim.owner)) else None,
                    }
                    for claim in kept
                ],
            }
        )
    return told


class SlicesHandler(APIHandler):  # type: ignore[misc]
    """Every slice, and of those that the asker may see: who holds them, who waits."""

    def initialize(self, desk: Desk) -> None:
        """Take the desk."""
        self.desk = desk

    @needs_scope("read:servers", post_filter=True)  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """Answer GET /slices."""
        scope = self.parsed_scopes["read:servers"]

        def may_see(user: str) -> bool:
            return scope == Scope.ALL or user in scope.get("user", ())

        gpus = await _gpus()
        slices = gpus.offered
        used = self.desk.use.read().get("notebooks", {})
        leases = self.desk.leases.all()
        held = {piece: None for lease in leases for piece in lease.pieces if piece not in slices}
        queue = self.desk.leases.queue(slices)
        claims = [place.claim for place in queue if place.claim]
        self.write(
            {
                "slices": describe_slices([*slices, *held], leases, claims, used, may_see),
                # Cordoned, or of GPUs that are not fit for work; those of notebooks are among the slices.
                "not_available": count_by_profile(gpus.withheld),
                "cordoned": count_by_profile(gpus.cordons),
                "queue": [describe_place(place) for place in queue if may_see(user_of(place.ticket.owner))],
                **(await _problems(gpus) if scope == Scope.ALL else {}),
            }
        )


class QueueHandler(APIHandler):  # type: ignore[misc]
    """The place of one notebook in the queue. Users who ask for it keep it, until they are called."""

    def initialize(self, desk: Desk) -> None:
        """Take the desk."""
        self.desk = desk

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str) -> None:
        """Answer GET /users/{user}/queue/{server}."""
        gpus = await _gpus()
        place = self.desk.leases.ask(f"{user_name}/{server_name}", gpus.offered, gpus.all_answered)
        if place is None:
            raise web.HTTPError(404, "This notebook waits for nothing.")
        self.write({**describe_place(place), "options": place.ticket.options})

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def delete(self, user_name: str, server_name: str) -> None:
        """Answer DELETE /users/{user}/queue/{server}."""
        owner, asker = f"{user_name}/{server_name}", self.current_user.name
        if not (self.desk.leave(owner) if asker == user_name else self.desk.remove(owner, asker)):
            raise web.HTTPError(404, "This notebook waits for nothing.")
        self.set_status(204)


class NoticesHandler(APIHandler):  # type: ignore[misc]
    """Notices to a user about their notebooks."""

    def initialize(self, desk: Desk) -> None:
        """Take the desk."""
        self.desk = desk

    @needs_scope("read:servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str) -> None:
        """Answer GET /users/{user}/notices: name of the server to sentence."""
        self.write(json.dumps(self.desk.notices.of(user_name)))


class SlicesPage(BaseHandler):  # type: ignore[misc]
    """Leases of all slices; for administrators."""

    def initialize(self, desk: Desk) -> None:
        """Take the desk."""
        self.desk = desk

    @web.authenticated
    @needs_scope("admin-ui")  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """Show the page; it asks the API for what it shows."""
        self.finish(await self.render_template("slices.html"))
