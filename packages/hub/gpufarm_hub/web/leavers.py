# SPDX-License-Identifier: GPL-3.0-or-later
"""Users who left while they have a notebook, wait for one or are in that of somebody else: the hub asks.

JupyterHub asks who a user is when a request comes for them. A notebook is its user's own program: one that
was altered need not ask the hub for anything any more.
"""

from __future__ import annotations

import asyncio
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.user import User

from gpufarm_hub.people import visitors

KNOWN = "gpufarm_visitors"  # in the hub's settings: keys of those who could enter at the last time


def configure(c: Any) -> None:
    """Add it to the hub's configuration, after the other handlers.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
    """
    c.JupyterHub.extra_handlers.append((r"/api/gpufarm/leavers", LeaversHandler))
    # The hub calls it for each page, with the user who looks at it or None.
    c.JupyterHub.template_vars |= {
        "gpufarm_doubt": lambda user: user.authenticator.doubt(user.name) if user else ""
    }


class LeaversHandler(APIHandler):  # type: ignore[misc]
    """Asks again who the users in notebooks are; the login ends what is of those who left.

    Also who may not enter the notebook of somebody else any more, such as a former administrator, loses that.
    It is for the keeper, which comes again and again.
    """

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        """Ask for each user of whom it was not asked of late."""
        inside = visitors.find(self.db)
        users = [
            user for user in self.users.values() if any(server.active for server in user.spawners.values())
        ]
        users += [self._user_from_orm(visitor.user) for visitor in inside]
        due = {user.name: user for user in users if self.authenticator.is_due(user.name)}
        await asyncio.gather(*map(self._ask, due.values()))
        self._end_visits({visitor.key for visitor in inside})
        self.set_status(204)

    def _end_visits(self, before: set[visitors.Key]) -> None:
        """End what those have open who lost the right to enter since the last time."""
        inside = visitors.find(self.db)
        after = {visitor.key for visitor in inside}
        known = self.settings.get(KNOWN)
        self.settings[KNOWN] = after
        if known is None:  # the hub was started anew, perhaps just before it had ended something
            visitors.end(self, {visitor.server for visitor in inside})
            known = set()
        left = self.settings.pop(visitors.SHUT_OUT, set())
        lost = {visitors.still_running(self.db, key) for key in ((known | before) - after) | left}
        visitors.end(self, filter(None, lost))

    async def _ask(self, user: User) -> None:
        try:
            await self.refresh_auth(user, force=True)
        except Exception:  # of one user; the others must still be asked for
            self.log.exception("It could not be asked who %s is", user.name)
