# SPDX-License-Identifier: GPL-3.0-or-later
"""Users who left while their notebooks run: the hub asks of itself, whatever a notebook makes of its user.

JupyterHub asks who a user is when a request comes for them. A notebook is its user's own program: one that
was altered need not ask the hub for anything any more.
"""

from __future__ import annotations

import asyncio
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.user import User


def configure(c: Any) -> None:
    """Add it to the hub's configuration, after the other handlers.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
    """
    c.JupyterHub.extra_handlers.append((r"/api/gpufarm/leavers", LeaversHandler))


class LeaversHandler(APIHandler):  # type: ignore[misc]
    """Asks again who the users with notebooks are; the login ends what is of those who left.

    It is for the keeper, which comes again and again.
    """

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        """Ask for each user of whom it was not asked of late."""
        working = [
            user for user in self.users.values() if any(server.ready for server in user.spawners.values())
        ]
        due = [user for user in working if self.authenticator.is_due(user.name)]
        await asyncio.gather(*map(self._ask, due))
        self.set_status(204)

    async def _ask(self, user: User) -> None:
        try:
            await self.refresh_auth(user, force=True)
        except Exception:  # of one user; the others must still be asked for
            self.log.exception("It could not be asked who %s is", user.name)
