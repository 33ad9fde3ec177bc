# SPDX-License-Identifier: GPL-3.0-or-later
"""Administrators do not open the server that several users share.

Its pages have the hub's own origin, so a program that one of its users planted there would act in the browser
of everybody who opens it, with all that they may do at the hub. This holds until it has an origin of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from jupyterhub.apihandlers.auth import OAuthAuthorizeHandler
from jupyterhub.apihandlers.users import SelfAPIHandler
from tornado import web

SENTENCE = (
    "Administrators cannot open the collaborative JupyterLab: what another of its users has put there could "
    "use your rights at this hub from within your browser. Log in as a user who administers nothing."
)

Method = Callable[[Any], Awaitable[None] | None]


def keep_out(account: str) -> None:
    """Refuse administrators who come to be told apart for the server of an account.

    Args:
        account: whose server it is.
    """
    client = f"jupyterhub-user-{account}"
    for method in ("get", "post"):
        setattr(OAuthAuthorizeHandler, method, _unless_administrator(OAuthAuthorizeHandler, method, client))
    SelfAPIHandler.get = _unless_administrators_token(SelfAPIHandler.get, client)


def _unless_administrator(handler: type[Any], method: str, client: str) -> Method:
    """The page that a server sends those to who have not logged in to it (RFC 6749, section 4.1.1)."""
    authorize = getattr(handler, method)

    def refuse(self: Any) -> Awaitable[None] | None:
        user = self.current_user
        if user is not None and user.admin and self.get_argument("client_id", "") == client:
            raise web.HTTPError(403, SENTENCE)
        answer: Awaitable[None] | None = authorize(self)
        return answer

    return refuse


def _unless_administrators_token(identify: Method, client: str) -> Method:
    """Where a server asks whose token a browser has: the token may be older than the rights of its owner."""

    def refuse(self: Any) -> Awaitable[None] | None:
        token = self.get_token()
        if token is not None and token.client_id == client and token.user and token.user.admin:
            raise web.HTTPError(403, SENTENCE)
        return identify(self)

    return refuse
