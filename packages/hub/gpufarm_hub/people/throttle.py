# SPDX-License-Identifier: GPL-3.0-or-later
"""How many wrong passwords may be tried: from one address, for one name, and in a browser that is known.

Attempts for one user from many addresses use up the limit of that name. That does not
lock the user out: a browser in which the user has logged in before has a count of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Rule(NamedTuple):
    """Limits of wrong passwords.

    Attributes:
        burst: attempts at once.
        seconds: after which one more is allowed.
    """

    burst: int
    seconds: float


# Many people may have one address. In browsers that are not known, one password a minute can be tried for a
# name.
RULES = {"address": Rule(20, 30), "name": Rule(10, 60), "browser": Rule(10, 30)}
MOST = 20_000  # counts that are remembered

Key = tuple[str, str]  # kind of the rule, and whose count it is


class Throttle:
    """Counts attempts.

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[Key, tuple[float, float]] = OrderedDict()  # attempts, and when that was so

    def take(self, keys: Iterable[Key]) -> float:
        """Count an attempt, before anybody knows how it ends.

        Returns:
            0, or for how many seconds there may be none; then it is not counted.
        """
        keys, now = list(keys), self._clock()
        wait = max((self._level(key, now) + 1 - RULES[key[0]].burst) * RULES[key[0]].seconds for key in keys)
        if wait > 0:
            return wait
        for key in keys:
            self._set(key, self._level(key, now) + 1, now)
        return 0

    def give_back(self, keys: Iterable[Key]) -> None:
        """Forget an attempt that was no wrong password."""
        now = self._clock()
        for key in keys:
            self._set(key, max(self._level(key, now) - 1, 0), now)

    def _level(self, key: Key, now: float) -> float:
        attempts, when = self._counts.get(key, (0.0, now))
        return max(attempts - (now - when) / RULES[key[0]].seconds, 0)

    def _set(self, key: Key, attempts: float, now: float) -> None:
        self._counts[key] = (attempts, now)
        self._counts.move_to_end(key)
        while len(self._counts) > MOST:
            self._counts.popitem(last=False)


def network(header: str | None, secret: str) -> str:
    """Return what counts as one address: that of the client, or the /64 network that a client of IPv6 has.

    Args:
        header: what the proxy says, ``ADDRESS MARK``; None where nothing came.
        secret: what the mark is made with.

    Returns:
        Empty where the proxy does not say it: all who come without the proxy are one.
    """
    address, _space, mark = (header or "").partition(" ")
    expected = hmac.new(secret.encode(), address.encode(), hashlib.sha256).hexdigest()
    if not secret or not hmac.compare_digest(expected.encode(), mark.encode()):
        return ""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


CROWD = "Very many people log in from your address at this moment. Try again in a minute."


def refusal(wait: float) -> str:
    """Return what those are told who have to wait."""
    return (
        f"Too many wrong passwords came from your address or for this name. Try again in {round(wait) + 1} "
        "seconds, or in a browser in which you have signed in before."
    )
