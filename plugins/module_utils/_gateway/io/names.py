# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of the machines that tasks run on. HAProxy would refuse to start for one name without any."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Callable, Iterable

LIFETIME = 60  # seconds that an address is not asked for again


def ask(name: str) -> str:
    """Ask the resolver for an address of a name.

    Args:
        name: of a machine.

    Returns:
        The address that the resolver prefers.

    Raises:
        OSError: there is none.
    """
    return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])


class Names:
    """Remembers addresses; one that cannot be had again stays as it was."""

    def __init__(self, ask: Callable[[str], str] = ask, clock: Callable[[], float] = time.monotonic) -> None:
        """Take who is asked, and a clock that gives seconds."""
        self._ask = ask
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}

    def addresses(self, hosts: Iterable[str]) -> dict[str, str]:
        """Find the address of each host.

        Args:
            hosts: names and addresses.

        Returns:
            The address of each that has one.
        """
        found = {}
        for host in hosts:
            address = self._address(host)
            if address:
                found[host] = address
        return found

    def _address(self, host: str) -> str:
        try:
            return str(ipaddress.ip_address(host))
        except ValueError:
            pass
        asked, address = self._known.get(host, (float("-inf"), ""))
        if self._clock() - asked >= LIFETIME:
            with contextlib.suppress(OSError):
                address = self._ask(host)
            self._known[host] = (self._clock(), address)
        return address
