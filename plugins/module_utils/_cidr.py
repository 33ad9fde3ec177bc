# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks by which a site names those of its fabrics, and what machines have in them. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")  # RFC 1122, 3.2.1.3


def networks(variable: str, texts: Iterable[str]) -> tuple[list[ipaddress.IPv4Network], list[str]]:
    """Return the networks that a variable has, and what is wrong with it.

    Args:
        variable: its name, for messages.
        texts: the networks in CIDR notation.
    """
    found: list[ipaddress.IPv4Network] = []
    problems = []
    for text in texts:
        try:
            found.append(ipaddress.IPv4Network(text))
        except ValueError:
            problems.append(
                f"{variable} has {text!r}, which is no IPv4 network; "
                "give its first address and the length of its prefix, such as 10.1.0.0/16."
            )
    problems += [
        f"{variable} has {network}, in which each machine reaches only itself by {LOOPBACK}; "
        "give the networks that join the machines."
        for network in found
        if network.overlaps(LOOPBACK)
    ]
    problems += [
        f"{variable} has {one} and {other}, which overlap; keep one of them."
        for one, other in combinations(found, 2)
        if one.overlaps(other)
    ]
    return found, problems


def interfaces(network: ipaddress.IPv4Network, links: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the interfaces that have an address in a network."""
    return [
        link["ifname"]
        for link in links
        if any(ipaddress.IPv4Address(entry["local"]) in network for entry in link["addr_info"])
    ]


def address(network: ipaddress.IPv4Network, links: Iterable[Mapping[str, Any]]) -> str:
    """Return the first address of a machine in a network; empty if it has none."""
    return next(
        (
            str(entry["local"])
            for link in links
            for entry in link["addr_info"]
            if ipaddress.IPv4Address(entry["local"]) in network
        ),
        "",
    )
