# SPDX-License-Identifier: GPL-3.0-or-later
"""The page on which users see what they hold, may have, and have used. Of others it tells nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from jupyterhub.handlers.base import BaseHandler
from tornado import web

from gpufarm_hub.sharing import history
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.leases import Lease
from gpufarm_hub.sharing.limits import Limit

DAYS = 14  # that the page shows


def configure(c: Any, desk: Desk) -> None:
    """Add the page to the hub's configuration, after everything else is there.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        desk: where slices are handed out.
    """
    c.JupyterHub.extra_handlers.append((r"/my-use", MyUsePage, {"desk": desk}))
    c.JupyterHub.template_vars |= {"gpufarm_my_use": True}


def in_words(limit: Limit) -> str:
    """Return what a user with this limit may have, as a sentence."""
    hold = f"hold {_number(limit.slices, 'GPU slice')} at once"
    if limit.gpus is not None and limit.gpus < limit.slices:
        hold += f" (of these {_number(limit.gpus, 'whole GPU')})"
    run = f"run {_number(limit.servers, 'notebook')} at once"
    if limit.memory:
        run += f" with {limit.memory / 2**30:g} GiB of memory"
    words = [hold, run]
    if limit.hours:
        words.append(f"let each run for {limit.hours:g} hour{'' if limit.hours == 1 else 's'}")
    sentence = f"You may {', '.join(words[:-1])} and {words[-1]}."
    if limit.slices_together:
        together = _number(limit.slices_together, "slice")
        sentence += f" All users of the limit {limit.name} may hold {together} together."
    return sentence


def _number(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


class MyUsePage(BaseHandler):  # type: ignore[misc]
    """Present and former slices of the user who opens the page."""

    def initialize(self, desk: Desk) -> None:
        """Take the desk."""
        self.desk = desk

    @web.authenticated
    async def get(self) -> None:
        """Show the page."""
        user = self.current_user.name
        now = datetime.now(UTC)
        leases = [lease for lease in self.desk.leases.all() if lease.user == user]
        used = self.desk.use.read().get("notebooks", {})

        def count() -> list[history.Day]:
            lines = history.read(self.desk.audit_file, now - timedelta(days=DAYS))
            held = [*history.ended(lines, user), *history.still(leases, user, now)]
            return history.by_day(held, DAYS, now)

        days = await asyncio.to_thread(count)
        limit = self.desk.limit_of(user, [group.name for group in self.current_user.groups])
        page = self.render_template(
            "mine.html",
            notebooks=self._notebooks(leases, used),
            holds=bool(leases),
            days=days,
            # A few minutes are a short bar, also for users without other use.
            most=max(1.0, *(day.total for day in days)),
            total=sum(day.total for day in days),
            span=span,
            shares=bool(self.desk.shared),
            may=in_words(limit),
        )
        self.finish(await page)

    def _notebooks(self, leases: list[Lease], used: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what the user runs or holds, the default notebook first."""
        user = self.current_user
        held = {lease.owner: lease for lease in leases}
        spawners = {f"{user.name}/{name}": one for name, one in user.spawners.items() if one.active}
        rows = []
        for owner in sorted(held.keys() | spawners.keys()):
            name, spawner = owner.partition("/")[2], spawners.get(owner)
            measured = used.get(owner, {})
            row = (
                describe(held[owner], measured)
                if owner in held
                else describe_without(name, spawner, measured)
            )
            # The page stops what runs; where a notebook only starts or stops there is nothing to open.
            row |= {"server": name, "active": spawner is not None}
            row["url"] = user.server_url(name) if spawner and spawner.ready else ""
            rows.append(row)
        return rows


def span(hours: float) -> str:
    """Return hours in words; less than one in minutes."""
    return f"{hours:.1f} h" if hours >= 1 else f"{math.ceil(60 * hours)} min"


def describe(lease: Lease, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notebook as the page shows it.

    Args:
        lease: what it holds.
        measured: what `keeper` knows of it; empty before its first look.
    """
    ends = measured.get("ends")
    return {
        "name": lease.owner.partition("/")[2] or "default",
        "slices": ", ".join(piece.profile for piece in lease.pieces),
        "notebooks": lease.notebooks,
        "since": _clock(datetime.fromisoformat(lease.taken)),
        "working": measured.get("working"),
        "ends": _clock(datetime.fromtimestamp(ends, UTC)) if ends else "not set",
    }


def describe_without(name: str, spawner: Any, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notebook without slices as the page shows it.

    Args:
        name: of the server.
        spawner: JupyterHub's.
        measured: as in `describe`.
    """
    started, ends = spawner.orm_spawner.started, measured.get("ends")
    return {
        "name": name or "default",
        "slices": "none",
        "notebooks": 1,
        "since": _clock(started.replace(tzinfo=UTC)) if started else "",
        "working": measured.get("working"),
        "ends": _clock(datetime.fromtimestamp(ends, UTC)) if ends else "not set",
    }


def _clock(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%d %b %H:%M")
