# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an issuer: endpoints and keys (OpenID Connect Discovery 1.0), userinfo, introspection (RFC 7662)."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

import httpx
from joserfc import jwk
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from gpufarm.serve.fields import https
from gpufarm.serve.refusals import Forbidden, NoAnswer, Unauthorized
from gpufarm.serve.settings import Issuer

# Seconds for which endpoints and keys are kept, and before keys are asked for again because one is unknown.
KEPT = 600.0
PAUSE = 30.0
# Seconds for which keys are kept while the issuer does not answer.
LONGEST_KEPT = 3600.0
# Seconds that an issuer has for an answer, and bytes that an answer may have.
PATIENCE = 5.0
LONGEST = 1024 * 1024
# Bits of an RSA key (RFC 7518, section 3.3).
RSA_BITS = 2048


class Provider:
    """An issuer, as it answers."""

    def __init__(self, issuer: Issuer) -> None:
        """Prepare; nothing is asked yet.

        Args:
            issuer: its settings.
        """
        self.issuer = issuer
        context = ssl.create_default_context(cafile=issuer.ca_file)
        self._client = httpx.Client(verify=context, timeout=PATIENCE, follow_redirects=False)
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._keys: KeySet | None = None
        self._asked = self._got = -KEPT

    def check(self) -> None:
        """Ask for keys, and with the client of this service if it has one for introspection.

        Raises:
            NoAnswer: the issuer does not answer as the settings say.
        """
        self.keys(None)
        if self.issuer.secret_file:
            self.introspect("none")

    def keys(self, kid: str | None) -> KeySet:
        """Give the keys for signatures.

        Args:
            kid: key that a token names; if it is unknown, the issuer is asked again, but not too often.

        Returns:
            The keys; those that are not for signatures of the accepted kinds are left out.

        Raises:
            NoAnswer: the issuer does not answer, or has no such key.
        """
        with self._lock:
            now = time.monotonic()
            keys = self._keys
            unknown = keys is None or (kid is not None and all(key.kid != kid for key in keys))
            due = now - self._asked >= (PAUSE if unknown else KEPT)
            if due:
                self._asked = now
                try:
                    self._known = {}
                    found = _signing(self._public(self._endpoint("jwks_uri")))
                    if found is None:
                        raise NoAnswer(f"issuer {self.issuer.url} has given no keys; try again later")
                    self._keys, self._got = found, now
                except NoAnswer:
                    if self._keys is None or now - self._got > LONGEST_KEPT:
                        raise
            if self._keys is None:
                raise NoAnswer(f"issuer {self.issuer.url} has given no keys; try again later")
            return self._keys

    def userinfo(self, token: str) -> dict[str, Any]:
        """Ask who has a token.

        Args:
            token: an access token of this issuer.

        Returns:
            The claims; none if the token has no scope for them.

        Raises:
            Unauthorized: the issuer does not accept the token.
            NoAnswer: the issuer does not answer.
        """
        try:
            endpoint = self._endpoint("userinfo_endpoint")
            headers = {"Accept": "application/json", "Authorization": f"Bearer {token}"}
            return self._asked_for("GET", endpoint, headers=headers)
        except Forbidden:
            return {}

    def introspect(self, token: str) -> dict[str, Any] | None:
        """Ask whether a token is valid.

        Args:
            token: as the client sent it.

        Returns:
            The claims; None if it is not.

        Raises:
            NoAnswer: the issuer does not answer.
        """
        assert self.issuer.secret_file  # the settings were checked
        secret = self.issuer.secret_file.read_text(encoding="utf-8").strip()
        endpoint = self._endpoint("introspection_endpoint")
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            found = self._asked_for("POST", endpoint, data=form, auth=(self.issuer.client_id, secret))
        except (Unauthorized, Forbidden) as error:
            raise NoAnswer(
                f"issuer {self.issuer.url} does not accept client_id and client_secret_file of this service"
            ) from error
        return found if found.get("active") is True else None

    def authorization_endpoint(self) -> str:
        """Tell where users sign in.

        Returns:
            The URL, without a query.

        Raises:
            NoAnswer: the issuer does not answer.
        """
        return self._endpoint("authorization_endpoint")

    def exchange(self, form: Mapping[str, str], client: str, secret: str) -> dict[str, Any]:
        """Exchange a code for tokens (RFC 6749, section 4.1.3).

        Args:
            form: the request without the client.
            client: id of the client.
            secret: of the client.

        Returns:
            The tokens.

        Raises:
            Unauthorized: the issuer does not accept the code.
            NoAnswer: the issuer does not answer, or does not accept the client.
        """
        login = (quote_plus(client), quote_plus(secret))  # RFC 6749, section 2.3.1
        try:
            return self._asked_for("POST", self._endpoint("token_endpoint"), data=dict(form), auth=login)
        except Unauthorized as error:
            raise Unauthorized(
                f"issuer {self.issuer.url} does not accept this sign-in; sign in again"
            ) from error
        except Forbidden as error:
            raise NoAnswer(
                f"issuer {self.issuer.url} does not accept the client of this service; tell its operator"
            ) from error

    def _endpoint(self, name: str) -> str:
        if not self._known:
            found = self._public(f"{self.issuer.url.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self.issuer.url:
                raise NoAnswer(
                    f"issuer {self.issuer.url} calls itself {str(found.get('issuer'))[:200]}; "
                    "write it in the settings exactly so"
                )
            self._known = found
        url = self._known.get(name)
        if not isinstance(url, str) or not https(url):
            raise NoAnswer(f"issuer {self.issuer.url} has no {name} with https")
        return url

    def _public(self, url: str) -> dict[str, Any]:
        """The object that needs no token, so a refusal is no mistake of the user."""
        try:
            return self._asked_for("GET", url, headers={"Accept": "application/json"})
        except (Unauthorized, Forbidden) as error:
            raise NoAnswer(f"issuer {self.issuer.url} refuses to tell its keys; try again later") from error

    def _asked_for(self, method: str, url: str, **what: Any) -> dict[str, Any]:
        """The object that the issuer answers with."""
        text = b""
        try:
            with self._client.stream(method, url, **what) as answer:
                if answer.status_code == 403:
                    raise Forbidden(f"issuer {self.issuer.url} refuses to tell more of this user")
                if answer.status_code in (400, 401):
                    raise Unauthorized("the issuer does not accept the access token; sign in again")
                if answer.status_code != 200:
                    raise NoAnswer(
                        f"issuer {self.issuer.url} answers with status {answer.status_code}; try again later"
                    )
                for part in answer.iter_bytes():
                    text += part
                    if len(text) > LONGEST:
                        raise NoAnswer(f"issuer {self.issuer.url} answers without end; try again later")
            found = json.loads(text)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NoAnswer(f"issuer {self.issuer.url} does not answer: {error}; try again later") from error
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"issuer {self.issuer.url} does not answer in JSON; try again later") from error
        if not isinstance(found, dict):
            raise NoAnswer(f"issuer {self.issuer.url} does not answer with an object; try again later")
        return found


def _signing(found: Mapping[str, Any]) -> KeySet | None:
    """The keys of a key set that verify signatures by a key that only the issuer has."""
    entries = found.get("keys")
    keys: list[RSAKey | ECKey | OKPKey] = []
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        try:
            key = jwk.import_key(entry)
        except (JoseError, ValueError, TypeError):
            continue
        if isinstance(key, RSAKey) and key.public_key.key_size < RSA_BITS:
            continue
        if isinstance(key, RSAKey | ECKey | OKPKey):
            keys.append(key)
    return KeySet([*keys]) if keys else None
