# SPDX-License-Identifier: GPL-3.0-or-later
"""Users whom the hub cannot look up, because its database fails, are not taken for strangers."""

from __future__ import annotations

from typing import Any

from jupyterhub.handlers.base import BaseHandler
from sqlalchemy.exc import SQLAlchemyError
from tornado import web

SENTENCE = (
    "This service has a problem of its own at the moment. Running notebooks go on and files are safe. "
    "Try again in some minutes; if it lasts, tell the administrator of this service."
)


def never() -> None:
    """Have pages and API answer with 503 and a sentence when the database fails.

    JupyterHub 6.1 takes the user as not logged in then (BaseHandler.prepare): it asks people for their
    password, and tells notebooks that the user may not come in.
    """
    find, prepare = BaseHandler.get_current_user, BaseHandler.prepare

    async def get_current_user(self: Any) -> Any:
        try:
            return await find(self)
        except SQLAlchemyError:
            self.gpufarm_database_failed = True
            raise

    async def prepare_known(self: Any) -> None:
        try:
            await prepare(self)
        finally:
            # Instead of anything else that seems wrong: the form of a stranger is refused as a forged one.
            if getattr(self, "gpufarm_database_failed", False):
                raise web.HTTPError(503, SENTENCE)

    BaseHandler.get_current_user = get_current_user
    BaseHandler.prepare = prepare_known
