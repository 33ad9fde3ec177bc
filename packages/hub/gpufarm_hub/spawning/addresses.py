# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of notebooks that systemd runs."""

from __future__ import annotations

import ipaddress
from itertools import count
from pathlib import Path

from . import walls

NAMESPACES = Path("/run/netns")  # ip-netns(8)

_turns = count()  # of all spawners of this hub


class NoAddressError(Exception):
    """All addresses are in use; the text is for the user."""


def free(subnet: str, namespaces: Path = NAMESPACES) -> str:
    """Return an address that no notebook has.

    It comes round again only after all others: two notebooks that start at once have different ones, and what
    is still on its way to a notebook that has ended does not meet the next one.

    Args:
        subnet: network of the notebooks; its first address is the machine's, its last one is for `probe`.
        namespaces: folder in which the namespaces of running notebooks are.

    Raises:
        NoAddressError: there is none.
    """
    _machine, *addresses, _probe = ipaddress.IPv4Network(subnet).hosts()
    for _attempt in addresses:
        address = str(addresses[next(_turns) % len(addresses)])
        if not (namespaces / f"{walls.NAMESPACE}{walls.name_of(address)}").exists():
            return address
    raise NoAddressError("Too many notebooks run on this machine; try again later.")


def of_probe(subnet: str) -> str:
    """Return the address that no notebook ever has."""
    return str(list(ipaddress.IPv4Network(subnet).hosts())[-1])
