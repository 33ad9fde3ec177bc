# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs users in at an issuer: OpenID Connect, authorization code with PKCE, state and nonce."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from gpufarm.serve.identity import Identity
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Unauthorized
from gpufarm.serve.settings import Pages
from gpufarm.serve.web.links import ROOT, place

# Seconds that a user has at the issuer.
PATIENCE = 600
# Scopes of the request; INDIGO IAM tells groups with profile.
SCOPE = "openid profile email"
_ERROR = re.compile(r"[a-z_]{1,64}")  # such as access_denied; RFC 6749, section 4.1.2.1
_COOKIE = re.compile(r"([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{0,1000})")


class SigningIn:
    """The way to the issuer and back."""

    def __init__(self, settings: Pages, identity: Identity, url: str, needed: Collection[str]) -> None:
        """Prepare; nothing is asked yet.

        Args:
            settings: of the pages.
            identity: with the issuer.
            url: public URL of this service, without a slash at its end.
            needed: claims of a user without which userinfo is asked.
        """
        self._needed = needed
        self._settings = settings
        self._identity = identity
        self._back = f"{url}{ROOT}/signed-in"

    def begin(self, wanted: str) -> tuple[str, str, str]:
        """Begin a sign-in.

        Args:
            wanted: page at which the user wants to be, as the request has it.

        Returns:
            The address at the issuer, the state with which the answer will come, and the cookie that the
            browser has to bring back with it.

        Raises:
            NoAnswer: the issuer does not answer.
        """
        endpoint = self._identity.provider(self._settings.issuer).authorization_endpoint()
        secret = secrets.token_urlsafe(32)
        state = _derived(secret, "state")
        challenge = hashlib.sha256(_derived(secret, "verifier").encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._back,
            "scope": SCOPE,
            "state": state,
            "nonce": _derived(secret, "nonce"),
            "code_challenge": _encoded(challenge),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}?{urlencode(query)}", state, f"{secret}.{_encoded(place(wanted).encode())}"

    def finish(self, query: Mapping[str, str], cookie: str) -> tuple[User, str]:
        """Take the answer of the issuer.

        Args:
            query: with which the browser came back.
            cookie: that it brought back; empty for none.

        Returns:
            The user, and the page at which the user wanted to be.

        Raises:
            Unauthorized: it is no answer to a sign-in of this browser, or the issuer refuses it.
            NoAnswer: the issuer does not answer.
        """
        found = _COOKIE.fullmatch(cookie)
        if not found:
            raise Unauthorized("this browser has begun no sign-in, or too long ago; sign in again")
        secret = found[1]
        state = query.get("state", "").encode(errors="replace")
        if not hmac.compare_digest(state, _derived(secret, "state").encode()):
            raise Unauthorized("the answer is to another sign-in; sign in again")
        issuer = self._settings.issuer
        if query.get("iss", issuer) != issuer:  # RFC 9207
            raise Unauthorized("the answer is of another issuer; sign in again")
        if "error" in query:
            why = query["error"] if _ERROR.fullmatch(query["error"]) else "it gives no reason"
            raise Unauthorized(f"the issuer refuses the sign-in: {why}")
        form = {
            "grant_type": "authorization_code",
            "code": query.get("code", ""),
            "redirect_uri": self._back,
            "code_verifier": _derived(secret, "verifier"),
        }
        client = self._settings.client_id
        assert self._settings.secret_file  # the settings were checked
        password = self._settings.secret_file.read_text(encoding="utf-8").strip()
        tokens = self._identity.provider(issuer).exchange(form, client, password)
        nonce = _derived(secret, "nonce")
        user = self._identity.signed_in(issuer, tokens, client, nonce, self._needed)
        return user, place(_decoded(found[2]))


def _derived(secret: str, use: str) -> str:
    """A value that only this browser can have, and from which the others cannot be found."""
    return _encoded(hmac.new(secret.encode(), use.encode(), hashlib.sha256).digest())


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return ""
