# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells who sends a request, by tokens that an issuer of the settings has made."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeGuard

from joserfc import jwt
from joserfc.errors import JoseError

from gpufarm.serve.people import User
from gpufarm.serve.provider import Provider
from gpufarm.serve.refusals import Unauthorized
from gpufarm.serve.settings import Issuer

# Letters of a token; those of INDIGO IAM with groups have some 2,000.
LONGEST = 16_384
# Seconds by which clocks may differ.
LEEWAY = 30
# Seconds for which an answer of an issuer about a token is kept, and the number of tokens.
KEPT = 60.0
MOST = 10_000
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, section 2.1
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
# Claims that only ID tokens have: they say who has signed in, and give no access (OpenID Connect Core, 2).
_OF_ID_TOKENS = ("nonce", "at_hash", "c_hash")
# Types of an access token (RFC 9068, section 2.1); others are for other uses, such as a notice of a sign-out.
_TYPES = ("jwt", "at+jwt")


class Identity:
    """The issuers, and what they said a moment ago."""

    def __init__(self, issuers: Iterable[Issuer], needed: Collection[str] = ()) -> None:
        """Prepare; nothing is asked yet.

        Args:
            issuers: of access tokens.
            needed: claims of a user without which userinfo is asked.
        """
        self._issuers = {issuer.url.rstrip("/"): issuer for issuer in issuers}
        # those that make tokens; a directory makes none
        self._providers = {
            name: Provider(issuer) for name, issuer in self._issuers.items() if not issuer.directory
        }
        self._needed = frozenset(needed)
        self._lock = threading.Lock()
        self._users: dict[str, tuple[float, User]] = {}

    def user(self, authorization: str | None) -> User:
        """Tell who sends a request.

        Args:
            authorization: header of the request; None if it has none.

        Returns:
            The user.

        Raises:
            Unauthorized: there is no valid token in it.
            NoAnswer: the issuer has to be asked and does not answer.
        """
        if not authorization:
            raise Unauthorized("this request needs an access token; send it as Authorization: Bearer TOKEN")
        user = self.known(authorization)
        if user is not None:
            return user
        found = _BEARER.fullmatch(authorization)
        if len(authorization) > LONGEST or not found or not _TOKEN.fullmatch(found[1]):
            raise Unauthorized("the header Authorization has no access token; send Bearer and the token")
        user, until = self._asked(found[1])
        with self._lock:
            if len(self._users) >= MOST:
                self._users.clear()
            self._users[_digest(authorization)] = (min(until, time.time() + KEPT), user)
        return user

    def known(self, authorization: str | None) -> User | None:
        """Tell who sends a request, if that was found out a moment ago.

        Args:
            authorization: header of the request; None if it has none.

        Returns:
            The user; None if the token has to be checked.
        """
        with self._lock:
            until, user = self._users.get(_digest(authorization or ""), (0.0, None))
        return user if until > time.time() else None

    def issuer(self, name: str) -> str | None:
        """Find an issuer, as clients write it with and without a slash at its end.

        Args:
            name: its URL.

        Returns:
            The URL as the issuer itself writes it; None if it is not in the settings.
        """
        found = self._issuers.get(name.rstrip("/"))
        return found.url if found else None

    def provider(self, issuer: str) -> Provider:
        """Give an issuer of tokens of the settings.

        Args:
            issuer: its URL, as the issuer itself writes it.

        Returns:
            The issuer, as it answers.
        """
        return self._providers[issuer.rstrip("/")]

    def signed_in(
        self, issuer: str, tokens: Mapping[str, Any], client: str, nonce: str, needed: Collection[str] = ()
    ) -> User:
        """Tell who has signed in (OpenID Connect Core 1.0, section 3.1.3.7).

        Args:
            issuer: its URL, as the issuer itself writes it.
            tokens: its answer to the code: ``id_token`` and ``access_token``.
            client: id of the client for which the ID token has to be.
            nonce: of the request for the sign-in.
            needed: more claims without which userinfo is asked.

        Returns:
            The user, with the same groups and rights as with an access token.

        Raises:
            Unauthorized: a token is missing or wrong.
            NoAnswer: the issuer has to be asked and does not answer.
        """
        provider, what = self.provider(issuer), "the ID token"
        claimed, access = _unverified(str(tokens.get("id_token"))), tokens.get("access_token")
        if claimed is None or not isinstance(access, str):
            raise Unauthorized("the issuer has given no ID token and access token; sign in again")
        claims = _decoded(provider, str(tokens["id_token"]), claimed[0], what)
        _check(provider.issuer, claims, (client,), what)
        if "azp" in claims and claims["azp"] != client:
            raise Unauthorized("the ID token is for another service; sign in again")
        if not hmac.compare_digest(str(claims.get("nonce")).encode(errors="replace"), nonce.encode()):
            raise Unauthorized("the ID token is of another sign-in; sign in again")
        return self._completed(provider, claims, access, needed)

    def remembered(self, issuer: str, claims: Mapping[str, Any]) -> User:
        """Tell who had these claims at the sign-in.

        Args:
            issuer: its URL, as the issuer itself writes it.
            claims: of the user.

        Returns:
            The user.
        """
        return _user(self.settings(issuer), claims)

    def settings(self, issuer: str) -> Issuer:
        """Give the settings of an issuer.

        Args:
            issuer: its URL, as the issuer itself writes it.

        Returns:
            The settings.
        """
        return self._issuers[issuer.rstrip("/")]

    def _completed(
        self, provider: Provider, claims: Mapping[str, Any], token: str, needed: Collection[str] = ()
    ) -> User:
        """The user of some claims, with what only userinfo tells."""
        own = {provider.issuer.groups_claim, provider.issuer.login_claim} - {""}
        if not {*own, *self._needed, *needed} <= claims.keys():
            more = provider.userinfo(token)
            if more and more.get("sub") != claims.get("sub"):
                raise Unauthorized("the issuer names another user for the access token; sign in again")
            claims = {**more, **claims}
        return _user(provider.issuer, claims)

    def _asked(self, token: str) -> tuple[User, float]:
        claims: dict[str, Any]
        claimed = _unverified(token)
        if claimed is None:
            if token.count(".") in (2, 4):  # a JWT or JWE, of whichever issuer; none may see those of another
                raise Unauthorized("the access token is a JWT that cannot be read; sign in again")
            provider, claims = self._opaque(token)
        else:
            issuer = claimed[1].get("iss")
            chosen = self._providers.get(issuer.rstrip("/")) if isinstance(issuer, str) else None
            if chosen is None:
                raise Unauthorized("the issuer of the access token is not accepted; sign in with another one")
            provider, claims = chosen, _verified(chosen, token, claimed[0])
        until = claims.get("exp")
        user = self._completed(provider, claims, token)
        return user, until if _time(until) else time.time() + KEPT

    def _opaque(self, token: str) -> tuple[Provider, dict[str, Any]]:
        provider = next((one for one in self._providers.values() if one.issuer.opaque != "refuse"), None)
        if provider is None:
            raise Unauthorized("the access token is no JWT; this service accepts no other tokens")
        if provider.issuer.opaque == "userinfo":
            return provider, provider.userinfo(token)
        claims = provider.introspect(token)
        if not claims:
            raise Unauthorized("the issuer does not accept the access token; sign in again")
        assumed = {"iss": provider.issuer.url, "exp": time.time() + KEPT}
        _check(provider.issuer, {**assumed, **claims}, provider.issuer.audience)
        return provider, claims


def _digest(authorization: str) -> str:
    return hashlib.sha256(authorization.encode(errors="replace")).hexdigest()


def _unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Header and claims of a JWT, of which nothing is proved yet; None if it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    found = []
    for part in parts[:2]:
        try:
            value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        found.append(value)
    return found[0], found[1]


def _verified(provider: Provider, token: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """The claims of an access token that the issuer has signed and that is valid now."""
    claims = _decoded(provider, token, header)
    _check(provider.issuer, claims, provider.issuer.audience)
    if "events" in claims:
        raise Unauthorized("the token is a notice of an event; send the access token")
    if any(name in claims for name in _OF_ID_TOKENS):
        raise Unauthorized("the token is an ID token; send the access token")
    return claims


def _decoded(
    provider: Provider, token: str, header: Mapping[str, Any], what: str = "the access token"
) -> dict[str, Any]:
    """The claims of a JWT that the issuer has signed."""
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in provider.issuer.algorithms:
        raise Unauthorized(f"{what} is not signed as this service demands; sign in again")
    if kid is not None and not isinstance(kid, str):
        raise Unauthorized(f"{what} names its key wrongly; sign in again")
    kind = str(header.get("typ", "jwt")).lower().removeprefix("application/")
    if kind not in _TYPES:
        raise Unauthorized(f"the token is of type {kind[:64]}; send the access token")
    keys = provider.keys(kid)  # the header's own jwk, jku and x5u are never used
    for key in keys if kid is None else [keys]:
        with contextlib.suppress(JoseError, ValueError, TypeError, KeyError):
            return dict(jwt.decode(token, key, algorithms=[algorithm]).claims)
    raise Unauthorized(f"the signature of {what} is wrong; sign in again")


def _time(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _check(
    issuer: Issuer, claims: Mapping[str, Any], audience: tuple[str, ...], what: str = "the access token"
) -> None:
    """Refuse claims that are not for us, or not for now (RFC 7519, section 4.1)."""
    now = time.time()
    if claims.get("iss") != issuer.url:
        raise Unauthorized(f"the issuer of {what} is not accepted; sign in with another one")
    if not _time(claims.get("exp")) or claims["exp"] <= now - LEEWAY:
        raise Unauthorized(f"{what} has expired; sign in again")
    for name in ("nbf", "iat"):
        if name in claims and (not _time(claims[name]) or claims[name] > now + LEEWAY):
            raise Unauthorized(f"{what} is not valid yet; compare the clocks")
    if audience:
        named = claims.get("aud")
        found = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        if not any(one in audience for one in found):
            raise Unauthorized(f"{what} is for another service; ask for {audience[0]}")


def _user(issuer: Issuer, claims: Mapping[str, Any]) -> User:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise Unauthorized("the access token names no user; sign in as a person")
    named = claims.get(issuer.groups_claim)
    groups = frozenset(
        one
        for one in (named if isinstance(named, list) else [])
        if isinstance(one, str) and 0 < len(one) <= 256 and one.isprintable()
    )
    return User(
        issuer=issuer.url,
        subject=subject,
        groups=groups,
        administrator=bool(issuer.administrators) and issuer.administrators in groups,
        claims=dict(claims),
    )
