# SPDX-License-Identifier: GPL-3.0-or-later
"""Browsers that are signed in. The database has a digest of the cookie, so its readers cannot use it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Collection

from sqlalchemy import delete

from gpufarm.serve.database import Database
from gpufarm.serve.identity import Identity
from gpufarm.serve.people import User
from gpufarm.serve.tables import Login

# Seconds after which a user has to sign in again, which tells the groups anew.
LIFETIME = 4 * 3600
# Claims by which pages name the user.
NAMES = ("preferred_username", "name", "email")


class Logins:
    """The logins of a database."""

    def __init__(
        self, database: Database, identity: Identity, issuer: str, needed: Collection[str] = ()
    ) -> None:
        """Take the database.

        Args:
            database: with the tables.
            identity: that tells groups and rights from claims.
            issuer: at which users sign in; logins of others have ended.
            needed: claims that are remembered, beside those of each user.
        """
        self._database = database
        self._identity = identity
        self._issuer = issuer
        asked = identity.settings(issuer)
        self._kept = {"sub", asked.groups_claim, asked.login_claim, *NAMES, *needed}

    def open(self, user: User) -> str:
        """Begin a login, and forget those that have ended.

        Args:
            user: the user.

        Returns:
            The secret for the cookie.

        Raises:
            Unavailable: the database does not answer.
        """
        secret, now = secrets.token_urlsafe(32), time.time()
        claims = {name: user.claims[name] for name in sorted(self._kept) if name in user.claims}
        with self._database.changing() as session:
            session.execute(delete(Login).where(Login.ends < now))
            session.add(Login(id=_digest(secret), issuer=user.issuer, claims=claims, ends=now + LIFETIME))
        return secret

    def find(self, secret: str) -> User | None:
        """Tell who uses a browser.

        Args:
            secret: of its cookie, which may be any text.

        Returns:
            The user; None if the browser is not signed in.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.reading() as session:
            found = session.get(Login, _digest(secret))
        if found is None or found.ends < time.time() or found.issuer != self._issuer:
            return None
        return self._identity.remembered(found.issuer, found.claims)

    def close(self, secret: str) -> None:
        """End a login.

        Args:
            secret: of its cookie.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            session.execute(delete(Login).where(Login.id == _digest(secret)))


def token(secret: str) -> str:
    """Make what proves that a form is from a page of this login.

    Args:
        secret: of the cookie.

    Returns:
        A text, from which the secret cannot be found.
    """
    return hmac.new(secret.encode(errors="replace"), b"form", hashlib.sha256).hexdigest()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
