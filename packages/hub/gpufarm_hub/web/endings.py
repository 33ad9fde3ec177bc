# SPDX-License-Identifier: GPL-3.0-or-later
"""Stops of notebooks through the hub: users learn who has ended theirs, if it was not themselves."""

from __future__ import annotations

import time
from typing import Any

from jupyterhub.handlers.base import BaseHandler

from gpufarm_hub.sharing import keeping
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.store import StoreError

# Services that say themselves why they end a notebook.
SPEAKING = ("gpufarm-keeper",)


def configure(desk: Desk) -> None:
    """Have each stop that a user or service asks for remembered.

    JupyterHub 6.1 has no hook that knows who asked: all of its requests, pages and the login end notebooks by
    this method of their handler.

    Args:
        desk: where users are told.
    """
    stop = BaseHandler.stop_single_user

    async def stop_single_user(self: Any, user: Any, server_name: str = "") -> Any:
        owner = f"{user.name}/{server_name}"
        asker: Any = getattr(self, "_jupyterhub_user", None)
        spawner = user.spawners.get(server_name)
        if spawner and not spawner.pending and is_somebody_else(asker, owner):
            try:
                desk.record("ended", owner, by=asker.name)
            except StoreError as error:
                self.log.error("It is not written down that %s ended %s: %s", asker.name, owner, error)
        future = await stop(self, user, server_name)
        try:
            remember(desk, owner, asker)
        except StoreError as error:
            self.log.error("%s is not told who ended the notebook: %s", user.name, error)
        return future

    BaseHandler.stop_single_user = stop_single_user


def is_somebody_else(asker: Any, owner: str) -> bool:
    """Tell whether the stop of a notebook needs an explanation; arguments as `remember`."""
    if asker is None:
        return False
    if asker.kind == "user":
        return bool(asker.name != owner.partition("/")[0])
    return asker.name not in SPEAKING


def remember(desk: Desk, owner: str, asker: Any) -> None:
    """Tell the owner of a notebook who has ended it; what was told before is over.

    Args:
        desk: where users are told.
        owner: user and server name.
        asker: JupyterHub's user or service that asked for the stop; None when nobody did.

    Raises:
        StoreError: the file of the notices cannot be used.
    """
    if asker is None or (asker.kind == "service" and asker.name in SPEAKING):
        return
    if not is_somebody_else(asker, owner):
        desk.notices.clear(owner)
        return
    name = asker.name if asker.kind == "user" else f"the service {asker.name}"
    ended = keeping.ended(f"{name} stopped it", time.time(), f"ask {name} why before you start it again")
    desk.notices.tell(owner, ended)
