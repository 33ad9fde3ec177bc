# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of passwords, of which nobody gets many.

Guesses for a name lock out no browser in which the user has signed in before: it has a count of its own.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import secrets
import threading
from collections.abc import Iterator
from typing import Any

from gpufarm.key import Key
from gpufarm.serve.directory import Directory
from gpufarm.serve.limits import Rate
from gpufarm.serve.refusals import TooMany, Unauthorized

# Wrong passwords at once, and in each minute after that, of an address, and of a name or a known browser.
OF_ADDRESS, OF_NAME = (20, 2), (10, 1)
# Checks at the same moment: a slow directory occupies no more connections of this service.
AT_ONCE = 8
# Seconds for which one waits for its turn: each occupies a thread of the service.
WAITS = 1.0
# Seconds for which a browser is known.
REMEMBERED = 180 * 86_400


class Passwords:
    """Checks of passwords by a directory."""

    def __init__(self, directory: Directory, key: Key) -> None:
        """Begin without a wrong password.

        Args:
            directory: that knows the passwords.
            key: by which a browser proves that it is known.
        """
        self._directory = directory
        self._key = key
        self._addresses = Rate(OF_ADDRESS[1], OF_ADDRESS[0])
        self._names = Rate(OF_NAME[1], OF_NAME[0])
        self._browsers = Rate(OF_NAME[1], OF_NAME[0])
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def claims(self, name: str, password: str, address: str, mark: str = "") -> dict[str, Any]:
        """Tell who has a name and a password.

        Args:
            name: as the user has entered it.
            password: likewise.
            address: of the browser.
            mark: cookie that `mark` has made, or anything else.

        Returns:
            The claims, as `gpufarm.serve.directory.Directory.claims` returns them.

        Raises:
            Unauthorized: the name or the password is wrong.
            TooMany: there were too many wrong passwords from this address or for this name, or many sign in.
            NoAnswer: the directory does not answer.
        """
        counts = [(self._addresses, _network(address)), (self._names, _spelt(name))]
        own, _dot, proof = mark.partition(".")
        if hmac.compare_digest(proof.encode(errors="replace"), self._proof(name, own).encode()):
            counts = [(self._browsers, own)]
        for rate, key in counts:
            rate.check(key)
        # Not while it waits for others, of whom nobody knows how they end: a course has one address.
        with self._turn(), self._counted(counts):
            return self._directory.claims(name, password)

    def mark(self, name: str) -> str:
        """Make the cookie of a browser in which a user has signed in.

        Args:
            name: as the user has entered it.

        Returns:
            Its value, which is good for this name only.
        """
        own = secrets.token_hex(16)
        return f"{own}.{self._proof(name, own)}"

    def _proof(self, name: str, own: str) -> str:
        return self._key.digest(["known browser", _spelt(name), own])

    @contextlib.contextmanager
    def _counted(self, counts: list[tuple[Rate, str]]) -> Iterator[None]:
        with contextlib.ExitStack() as taken:
            for rate, key in counts:  # before the check, so that many at once count, too
                rate.take(key)
                taken.callback(rate.give, key)
            try:
                yield
            except Unauthorized:
                taken.pop_all()  # a wrong one stays counted
                raise

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._free.acquire(timeout=WAITS):
            raise TooMany("many users sign in at this moment; try again in a few seconds")
        try:
            yield
        finally:
            self._free.release()


def _spelt(name: str) -> str:
    return name[:256].strip().lower()


def _network(address: str) -> str:
    """An address; of IPv6 the network that one site has (RFC 6177)."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False)) if found.version == 6 else address
