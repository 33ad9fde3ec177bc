# SPDX-License-Identifier: GPL-3.0-or-later
"""Admit visitors to notebooks of others, such as the collaborative one, and end visits.

A notebook asks the hub about the sender of each request, and caches the answer for a while. It does not ask
about an open web socket, and its user may have dropped the token since. So the right to enter
counts, and not the record of entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from jupyterhub import orm, roles, scopes

BELIEVED = 60  # seconds for which a notebook believes what the hub has said about a user
RECORDED = 30  # seconds between two records of a user's activity (JupyterHub.activity_resolution)
# Numbers of the user and of the server in the hub's database, and when the server was started.
Key = tuple[int, int, datetime]
SHUT_OUT = "gpufarm_shut_out"  # in the hub's settings: keys of those who have just lost all rights
_later: set[asyncio.Task[None]] = set()  # nothing else holds a task that nobody waits for


class Visitor(NamedTuple):
    """Somebody who may have entered a server of somebody else.

    Attributes:
        user: who.
        server: where.
    """

    user: orm.User
    server: orm.Spawner

    @property
    def key(self) -> Key:
        """State that outlives the objects of the database."""
        return self.user.id, self.server.id, self.server.started


def find(db: Any) -> list[Visitor]:
    """Return who has the right to enter a server that runs, and was active since it was started."""
    runs = orm.Spawner.server_id.isnot(None), orm.Spawner.started.isnot(None)
    servers = db.query(orm.Spawner).filter(*runs).all()
    if not servers:
        return []
    earlier = timedelta(seconds=BELIEVED + RECORDED)
    first = min(server.started for server in servers) - earlier
    found = []
    for user in db.query(orm.User).filter(orm.User.last_activity >= first):
        reach = scopes.parse_scopes(scopes.get_scopes_for(user)).get("access:servers", {})
        found += [
            Visitor(user, server)
            for server in servers
            if server.user is not user
            and user.last_activity >= server.started - earlier
            and scopes.check_scope_filter(reach, server, "server")
        ]
    return found


def still_running(db: Any, key: Key) -> orm.Spawner | None:
    """Return the server of a visitor's key, unless it has ended since."""
    server = db.get(orm.Spawner, key[1])
    return server if server and server.server_id is not None and server.started == key[2] else None


def shut_out(handler: Any, user: orm.User) -> None:
    """Take all rights from somebody who has left; what they have open with others ends at the next look.

    Args:
        handler: of a request to the hub, any one.
        user: who has left.
    """
    if not (user.groups or user.admin or user.api_tokens):
        return  # they were shut out before, and have not logged in since
    inside = {visitor.key for visitor in find(handler.db) if visitor.user is user}
    handler.settings.setdefault(SHUT_OUT, set()).update(inside)
    user.groups, user.admin = [], False
    roles.assign_default_roles(handler.db, entity=user)
    for token in list(user.api_tokens):
        handler.db.delete(token)
    handler.db.commit()


def end(handler: Any, servers: Iterable[orm.Spawner]) -> None:
    """End the web sockets of servers as soon as no notebook believes those who may not enter any more.

    Those of everybody else connect again by themselves.

    Args:
        handler: of a request to the hub, any one.
        servers: which.
    """
    for server in servers:
        task = asyncio.ensure_future(_set_route_anew(handler, server.user.name, server.name))
        _later.add(task)
        task.add_done_callback(_later.discard)


async def _set_route_anew(handler: Any, user_name: str, server_name: str) -> None:
    await asyncio.sleep(BELIEVED + 1)
    user = handler.find_user(user_name)
    if user and server_name in user.spawners and user.spawners[server_name].ready:
        try:
            await handler.proxy.add_user(user, server_name)
        except Exception:  # of the proxy; its next start ends all web sockets
            handler.log.exception("Web sockets of the server of %s could not be ended", user_name)
