# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may use the hub: members of a provider's groups whose names can be accounts of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oauthenticator.generic import GenericOAuthenticator
from tornado.httpclient import HTTPError as HttpClientError
from tornado.web import HTTPError
from traitlets import Unicode

from .accounts import AccountError, Persons, check_name


def groups_in(claims: Mapping[str, Any], name: str) -> list[str]:
    """Return the groups of a claim without the leading slash of WLCG profiles.

    INDIGO IAM sends ``groups`` as names and ``wlcg.groups`` as paths (WLCG Common JWT Profiles 1.0).
    """
    value = claims.get(name)
    if not isinstance(value, list):
        return []
    return [group.removeprefix("/") for group in value if isinstance(group, str)]


class GroupAuthenticator(GenericOAuthenticator):  # type: ignore[misc]
    """Login by an OpenID provider."""

    issuer = Unicode(help="The provider's issuer identifier.").tag(config=True)
    persons_file = Unicode(help="The file that remembers whose a user name is.").tag(config=True)

    async def check_allowed(self, username: str, auth_model: dict[str, Any] | None) -> bool:
        """Tell whether the user may come in.

        Raises:
            tornado.web.HTTPError: the user's groups would do, but the name cannot be used; the page says why.
        """
        if not await super().check_allowed(username, auth_model):
            return False
        if auth_model is None:
            return True
        try:
            check_name(username)
            subject = auth_model["auth_state"][self.user_auth_state_key]["sub"]
            Persons(Path(self.persons_file)).bind(username, self.issuer, subject)
        except AccountError as error:
            raise HTTPError(403, "%s", str(error)) from error
        return True

    async def refresh_user(self, user: Any, handler: Any = None, **kwargs: Any) -> bool | dict[str, Any]:
        """Ask the provider again who the user is, and end the session of one who may not come in any more.

        While the provider is out of order nobody is thrown out: running work matters more.
        """
        try:
            model = await super().refresh_user(user, handler, **kwargs)
        except (HttpClientError, OSError) as error:
            self.log.warning("The provider does not answer, %s stays logged in: %s", user.name, error)
            return True
        if isinstance(model, dict) and not await self.check_allowed(user.name, model):
            return False
        return model
