# SPDX-License-Identifier: GPL-3.0-or-later
"""Login by an OpenID provider: members of its groups whose names can be, or are, accounts of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from oauthenticator.generic import GenericOAuthenticator
from oauthenticator.oauth2 import OAuthLoginHandler, OAuthLogoutHandler
from tornado.httpclient import HTTPError as HttpClientError
from tornado.httputil import url_concat
from tornado.web import HTTPError
from traitlets import Bool, Unicode

from .accounts import NoAccountError, Persons, check_name, check_spelling, uid_of_shared
from .login import LeavingLogin, LoginDownError, apply_groups, forbidden, refusal

# Whether the provider was out of order when it was asked for a token.
_provider_failed: ContextVar[bool] = ContextVar("provider_failed", default=False)


def configure(c: Any, login: dict[str, Any], public_url: str, persons_file: str, own_accounts: bool) -> None:
    """Configure the login.

    Args:
        c: the hub's configuration object.
        login: the settings' part about it.
        public_url: the hub's address, as users know it.
        persons_file: the file that remembers whose a user name is.
        own_accounts: whether the hub makes accounts for users.
    """
    client = json.loads(Path(login["client_file"]).read_text(encoding="utf-8"))
    c.JupyterHub.authenticator_class = OidcLogin
    auth = c.OidcLogin
    auth.issuer = login["issuer"]
    auth.persons_file = persons_file
    auth.own_accounts = own_accounts
    auth.owner = login["owner"]
    auth.client_id = client["client_id"]
    auth.client_secret = client["client_secret"]
    auth.enable_pkce = True
    auth.oauth_callback_url = f"{public_url}/hub/oauth_callback"
    auth.authorize_url = login["authorization_endpoint"]
    auth.token_url = login["token_endpoint"]
    auth.userdata_url = login["userinfo_endpoint"]
    auth.end_session_url = login["end_session_endpoint"]
    if login["ca_file"]:
        auth.http_request_kwargs = {"ca_certs": login["ca_file"]}
    auth.scope = login["scopes"]
    auth.login_service = "your institution's account"
    auth.username_claim = login["username_claim"]
    auth.auth_state_groups_key = lambda auth_state: groups_in(auth_state["oauth_user"], login["groups_claim"])
    apply_groups(auth, login["groups"], login["admin_groups"])
    auth.custom_403_message = refusal([*login["groups"], *login["admin_groups"]], "your identity provider")


def groups_in(claims: Mapping[str, Any], name: str) -> list[str]:
    """Return the groups of a claim without the leading slash of WLCG profiles.

    INDIGO IAM sends ``groups`` as names and ``wlcg.groups`` as paths (WLCG Common JWT Profiles 1.0). A name
    with dots that is no claim itself leads into nested claims, such as Keycloak's ``realm_access.roles``.
    """
    value: Any = claims.get(name)
    if value is None:
        value = claims
        for key in name.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, list):
        return []
    return [group.removeprefix("/") for group in value if isinstance(group, str)]


class EndSessionHandler(OAuthLogoutHandler):  # type: ignore[misc]
    """Ends the session here, then leads to where the provider ends its own.

    OpenID Connect RP-Initiated Logout 1.0, section 2. No ``id_token_hint`` is sent: it would put what the
    provider tells of the user into an address, and so the provider asks whether to sign out there as well.
    """

    async def render_logout_page(self) -> None:
        """Lead to the provider, if it ends sessions."""
        auth = self.authenticator
        if auth.end_session_url:
            self.redirect(url_concat(auth.end_session_url, {"client_id": auth.client_id}))
        else:
            await super().render_logout_page()


class LoginHandler(OAuthLoginHandler):  # type: ignore[misc]
    """Leads to the provider, which asks again who the user is if the address says so."""

    def authorize_redirect(self, *args: Any, extra_params: dict[str, str] | None = None, **more: Any) -> None:
        """Lead there; ``prompt`` is of OpenID Connect Core 1.0, section 3.1.2.1."""
        anew = {"prompt": "login"} if self.get_argument("anew", "") else {}
        super().authorize_redirect(*args, extra_params={**(extra_params or {}), **anew}, **more)


class OidcLogin(LeavingLogin, GenericOAuthenticator):  # type: ignore[misc]
    """Login by an OpenID provider."""

    login_handler = LoginHandler
    logout_handler = EndSessionHandler
    source = "Your identity provider"

    issuer = Unicode(help="The provider's issuer identifier.").tag(config=True)
    owner = Unicode(help="Subject of the deployment's owner, who needs no group.").tag(config=True)
    persons_file = Unicode(help="The file that remembers whose a user name is.").tag(config=True)
    own_accounts = Bool(True, help="Whether the hub makes accounts for users.").tag(config=True)
    end_session_url = Unicode(help="Where the provider ends sessions; empty if it does not.").tag(config=True)

    async def authenticate(self, handler: Any, data: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Trade the provider's code for what it tells of the user.

        Raises:
            tornado.web.HTTPError: it tells nothing; the page says why.
        """
        try:
            model: dict[str, Any] = await super().authenticate(handler, data, **kwargs)
        except (HttpClientError, OSError) as error:
            self.log.error("The identity provider does not let a user log in: %s", error)
            if isinstance(error, HttpClientError) and error.code < 500:
                raise HTTPError(
                    403,
                    "Your identity provider took this login back. Go to the start page and sign in again.",
                ) from error
            raise HTTPError(
                503,
                "Your identity provider does not answer. Try again in some minutes; if it lasts, tell the "
                "administrator of this service.",
            ) from error
        with forbidden():
            check_spelling(model["name"])  # names with a slash the hub would refuse without a word
        return model

    def user_info_to_username(self, user_info: dict[str, Any]) -> str:
        """Return the user's name.

        Raises:
            tornado.web.HTTPError: the provider tells none, or one that is no account; the page says so.
        """
        name = user_info.get(self.username_claim)
        if not isinstance(name, str) or not name:
            raise HTTPError(
                403,
                f"Your identity provider tells no user name (claim {self.username_claim}), so you have no "
                "account here. Ask the administrator of this service.",
            )
        if not self.own_accounts:
            # JupyterHub makes capital letters small, and another user may have that name.
            with forbidden():
                check_spelling(name)
        return name

    async def update_auth_model(self, auth_model: dict[str, Any]) -> dict[str, Any]:
        """Make the owner an administrator; who else is one is for the groups to say."""
        auth_model["admin"] = bool(self.owner) and self._subject(auth_model) == self.owner
        return auth_model

    async def check_allowed(self, username: str, auth_model: dict[str, Any] | None) -> bool:
        """Tell whether the user may come in.

        Raises:
            tornado.web.HTTPError: the user's groups would do, but the name cannot be used; the page says why.
        """
        if not await super().check_allowed(username, auth_model):
            return False
        if auth_model is not None:
            persons, subject = Persons(Path(self.persons_file)), self._subject(auth_model)
            with forbidden():
                if self.own_accounts:
                    check_name(username)
                else:
                    # The spawner reads the uid, so that it uses the account.
                    auth_model["auth_state"]["uid"] = await asyncio.to_thread(uid_of_shared, username)
                persons.bind(username, self.issuer, subject, only=not self.own_accounts)
        return True

    async def look_again(self, user: Any, handler: Any) -> bool | dict[str, Any] | None:
        """Ask the provider again who the user is.

        Raises:
            LoginDownError: it does not answer.
        """
        state = await user.get_auth_state()
        if not state or "token_response" not in state:
            return False  # logged in while users logged in another way
        _provider_failed.set(False)
        try:
            model: bool | dict[str, Any] = await GenericOAuthenticator.refresh_user(self, user, handler)
        except (HttpClientError, OSError) as error:
            raise LoginDownError(f"the provider does not answer ({error})") from error
        except HTTPError as error:
            self.log.warning("%s must log in again: %s", user.name, error)
            return False
        if model is False and _provider_failed.get():
            raise LoginDownError("the provider gives no token")
        try:
            if isinstance(model, dict) and not await self.check_allowed(user.name, model):
                return None
        except HTTPError as error:
            self.log.warning("%s: %s", user.name, error)
            # The service that knows the accounts may be down, so the notebook goes on for a while.
            return False if isinstance(error.__cause__, NoAccountError) else None
        return model

    async def get_token_info(self, handler: Any, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the provider for a token, and remember whether it is out of order.

        Of a provider that gives none, oauthenticator does not tell whether it refuses or does not answer.
        """
        try:
            info: dict[str, Any] = await super().get_token_info(handler, params)
        except HttpClientError as error:
            _provider_failed.set(error.code >= 500)
            raise
        except OSError:
            _provider_failed.set(True)
            raise
        return info

    def _subject(self, auth_model: dict[str, Any]) -> str:
        return str(auth_model["auth_state"][self.user_auth_state_key]["sub"])
