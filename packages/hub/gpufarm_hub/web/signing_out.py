# SPDX-License-Identifier: GPL-3.0-or-later
"""Signing out while a notebook runs: the page says that it goes on, and offers to stop it."""

from __future__ import annotations

from typing import Any

from jupyterhub.handlers.login import LogoutHandler
from tornado import web

from gpufarm_hub.sharing import keeping
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.keeping import Rules
from gpufarm_hub.store import StoreError

STILL_RUNS = (
    "The hub could not stop your notebook, which may still be starting, so you are still signed in. "
    "Try again in some minutes, or sign out and let it run."
)


def configure(rules: Rules, desk: Desk) -> None:
    """Have users with a notebook asked before they are signed out.

    The login's own handler, which may lead to where a provider ends its session, derives from this one of
    JupyterHub and has no other ``get``.

    Args:
        rules: when notebooks end.
        desk: where slices are handed out.
    """
    sign_out = LogoutHandler.get

    async def get(self: Any) -> None:
        user = self.current_user
        running = [name for name, spawner in user.spawners.items() if spawner.active] if user else []
        if not running:
            await sign_out(self)
            return
        held = _held(desk, user.name)
        idle = rules.idle_seconds(bool(held))
        page = self.render_template(
            "sign_out.html",
            running=sorted(name or "default" for name in running),
            slices=", ".join(held),
            idle=keeping.span(idle) if idle else "",
        )
        self.finish(await page)

    async def post(self: Any) -> None:
        user = self.current_user
        if user and self.get_body_argument("stop", ""):
            await self._shutdown_servers(user)
            # JupyterHub leaves out those that are starting.
            if any(spawner.active and spawner.pending != "stop" for spawner in user.spawners.values()):
                raise web.HTTPError(503, STILL_RUNS)
        await sign_out(self)

    LogoutHandler.get, LogoutHandler.post = get, post


def _held(desk: Desk, user: str) -> list[str]:
    """Return the profiles of the slices that a user holds; none while the file cannot be read."""
    try:
        leases = desk.leases.all()
    except StoreError:
        return []
    return [piece.profile for lease in leases if lease.user == user for piece in lease.pieces]
