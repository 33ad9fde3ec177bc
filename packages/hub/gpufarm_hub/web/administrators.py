# SPDX-License-Identifier: GPL-3.0-or-later
"""Administrators do not open the servers that several users share.

Their pages have the hub's own origin, so a program that one of the users planted there would act in the
browser of everybody who opens them, with all that they may do at the hub. This holds until they have their
own origin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from jupyterhub import orm
from jupyterhub.apihandlers.auth import OAuthAuthorizeHandler
from jupyterhub.apihandlers.users import SelfAPIHandler
from tornado import web

SENTENCE = (
    "Administrators cannot open the collaborative JupyterLab: what another of its users has put there could "
    "use your rights at this hub from within your browser. Log in as a user who administers nothing."
)

Method = Callable[[Any], Awaitable[None] | None]


def keep_out(account: str) -> None:
    """Refuse administrators at the login of an account's servers, whatever these are called.

    Args:
        account: whose servers they are.
    """
    for method in ("get", "post"):
        authorize = getattr(OAuthAuthorizeHandler, method)
        setattr(OAuthAuthorizeHandler, method, _unless_administrator(authorize, account))
    SelfAPIHandler.get = _unless_administrators_token(SelfAPIHandler.get, account)


def _belongs(client: orm.OAuthClient | None, account: str) -> bool:
    """Tell whether a client of the hub's provider is a server of an account.

    Its identifier does not tell: that of the server ``x`` of a user and that of a user whose name ends in
    ``-x`` can be the same text.
    """
    return client is not None and client.spawner is not None and client.spawner.user.name == account


def _unless_administrator(authorize: Method, account: str) -> Method:
    """The page that a server sends those to who have not logged in to it (RFC 6749, section 4.1.1)."""

    def refuse(self: Any) -> Awaitable[None] | None:
        user = self.current_user
        if user is not None and user.admin:
            identifier = self.get_argument("client_id", "")
            client = self.db.query(orm.OAuthClient).filter_by(identifier=identifier).first()
            if _belongs(client, account):
                raise web.HTTPError(403, SENTENCE)
        return authorize(self)

    return refuse


def _unless_administrators_token(identify: Method, account: str) -> Method:
    """Where a server asks whose token a browser has: the token may be older than the rights of its owner."""

    def refuse(self: Any) -> Awaitable[None] | None:
        token = self.get_token()
        if token and token.user and token.user.admin and _belongs(token.oauth_client, account):
            raise web.HTTPError(403, SENTENCE)
        return identify(self)

    return refuse
