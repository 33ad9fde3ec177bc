# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces that a machine is to have: bonds, VLANs and others. No I/O."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

BOND, VLAN, ETHERNET = "bond", "vlan", "ethernet"
LACP, ACTIVE_BACKUP = "802.3ad", "active-backup"
DEFAULT = "default"
# The kernel refuses longer ones, `.`, `..` and those with a slash, a colon or white space (dev_valid_name in
# net/core/dev.c). systemd-networkd reads names as patterns, so signs of these are refused too. It takes a
# number for an index, and the kernel has sysctls of `all` and `default` interfaces.
NAME = re.compile(r"(?!(\d+|all|default|lo)\Z)[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
# Bytes. IPv6 needs the former (RFC 8200, 5); the latter is the most of the kernel's Ethernet devices
# (ETH_MAX_MTU in uapi/linux/if_ether.h).
LEAST_MTU, MOST_MTU = 1280, 65535
USUAL_MTU = 1500
VLANS = range(1, 4095)  # IEEE 802.1Q, 9.6: 0 and 4095 are none

Address = Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]


@dataclass(frozen=True)
class Interface:
    """An interface as it is declared.

    `addresses` are in CIDR notation, `routes` pairs of a network (or `default`) and a gateway. `mtu` is in
    bytes and `speed` in Mbit/s, 0 for what there is. A bond has `members`, a VLAN a number `vlan` and an
    interface `over` which it runs.
    """

    name: str
    members: tuple[str, ...] = ()
    mode: str = ACTIVE_BACKUP
    primary: str = ""
    vlan: int = 0
    over: str = ""
    mtu: int = 0
    speed: int = 0
    addresses: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> str:
        """`bond`, `vlan` or `ethernet`."""
        if self.members:
            return BOND
        return VLAN if self.vlan else ETHERNET


def parse(entry: Mapping[str, Any]) -> Interface:
    """Return the interface of an entry of `network_interfaces`, in which values may be left out."""
    given = {key: value for key, value in entry.items() if value is not None}
    routes = tuple((str(to), str(via)) for to, via in given.pop("routes", {}).items())
    lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
    return Interface(**{**given, **lists, "routes": routes})


def devices(interfaces: Iterable[Interface]) -> list[str]:
    """Return the names of interfaces that are there already: members of bonds, and those of no other kind."""
    return [
        name
        for one in interfaces
        if one.kind != VLAN
        for name in (one.members if one.kind == BOND else (one.name,))
    ]


def problems(interfaces: Sequence[Interface]) -> list[str]:
    """Return why no machine can have such interfaces, a sentence for each reason."""
    by_name = {one.name: one for one in interfaces}
    return [
        f"network_interfaces: {problem}"
        for found in (
            _names(interfaces),
            *(_of_kind(one, by_name) for one in interfaces),
            *(_mtu(one, by_name) for one in interfaces),
            *(_addresses(one) for one in interfaces),
            *(_routes(one) for one in interfaces),
            _together(interfaces),
        )
        for problem in found
    ]


def _names(interfaces: Iterable[Interface]) -> Iterator[str]:
    names = [one.name for one in interfaces]
    members = [member for one in interfaces for member in one.members]
    for name in dict.fromkeys(names + members):
        if not NAME.fullmatch(name):
            yield (
                f"{name!r} cannot be the name of an interface; use 1 to 15 letters, digits, dots, hyphens "
                "and underscores, not only digits, and none of all, default and lo."
            )
    for name, number in Counter(names).items():
        if number > 1:
            yield f"{name} is declared {number} times; declare it once."
    for name, number in Counter(members).items():
        if number > 1:
            yield f"{name} is a member {number} times; name it in one bond, once."
        if name in names:
            yield (
                f"{name} is declared and is a member of a bond, which has addresses and MTU in its place; "
                f"take the entry of {name} out."
            )


def _of_kind(one: Interface, by_name: Mapping[str, Interface]) -> Iterator[str]:
    if one.members and (one.vlan or one.over):
        yield f"{one.name} has members and is a VLAN; declare a bond, and a VLAN over it."
    if one.primary and (one.mode != ACTIVE_BACKUP or one.primary not in one.members):
        yield (
            f"{one.name} has the primary {one.primary}, which must be a member of a bond in mode "
            f"{ACTIVE_BACKUP}; take primary out, or name such a member."
        )
    if bool(one.vlan) != bool(one.over):
        yield f"{one.name} is a VLAN only with both vlan and over; give both or neither."
    elif one.vlan:
        below = by_name.get(one.over)
        if one.vlan not in VLANS:
            yield f"{one.name} has the VLAN {one.vlan}; choose {VLANS[0]} to {VLANS[-1]}."
        if below is None or below.kind == VLAN:
            yield (
                f"{one.name} runs over {one.over}, which is no interface of the list or a VLAN; declare "
                f"{one.over} too, with its addresses."
            )
        if one.speed:
            yield f"{one.name} is a VLAN and has a speed; declare the speed of {one.over}."


def _mtu(one: Interface, by_name: Mapping[str, Interface]) -> Iterator[str]:
    if one.mtu and not LEAST_MTU <= one.mtu <= MOST_MTU:
        yield f"{one.name} has an MTU of {one.mtu} bytes; choose {LEAST_MTU} to {MOST_MTU}."
    below = by_name.get(one.over)
    if below and one.mtu > (below.mtu or USUAL_MTU):
        yield (
            f"{one.name} has an MTU of {one.mtu} bytes, more than {below.name}, over which it runs; "
            f"give {below.name} at least that."
        )


def _addresses(one: Interface) -> Iterator[str]:
    for text in one.addresses:
        address = interface_address(text)
        if address is None:
            yield (
                f"{one.name} has the address {text!r}, which is none of a machine; give an address and the "
                "length of its prefix, such as 10.1.0.7/16."
            )


def interface_address(text: str) -> Address | None:
    """Return an address in CIDR notation that a machine can have; None for other texts."""
    try:
        address = ipaddress.ip_interface(text)
    except ValueError:
        return None
    network = address.network
    # Networks of two addresses and of one have no address of their own (RFC 3021).
    whole = address.version == 4 and network.prefixlen < 31
    ends = (network.network_address, network.broadcast_address) if whole else ()
    unusual = address.is_multicast or address.is_loopback or address.is_unspecified or address.is_link_local
    return None if "/" not in text or "%" in text or unusual or address.ip in ends else address


def route(to: str, via: str) -> tuple[str, str]:
    """Return network and gateway of a route in one spelling; the network of a default route is `default`.

    Raises:
        ValueError: one of them is none, or they are of different versions of IP.
    """
    # Any text may follow as a zone (ipaddress.IPv6Address.scope_id), also further lines of a file.
    if "%" in to + via:
        raise ValueError(f"{to} or {via} has a zone")
    gateway = ipaddress.ip_address(via)
    if to == DEFAULT:
        return DEFAULT, str(gateway)
    network = ipaddress.ip_network(to)
    if network.version != gateway.version:
        raise ValueError(f"{to} is IPv{network.version} and {via} is not")
    return (str(network) if network.prefixlen else DEFAULT), str(gateway)


def _routes(one: Interface) -> Iterator[str]:
    networks = [address.network for address in map(interface_address, one.addresses) if address]
    for to, via in one.routes:
        try:
            _network, gateway = route(to, via)
        except ValueError:
            yield (
                f"{one.name} has the route to {to!r} via {via!r}; give a network such as 10.2.0.0/16 or "
                f"{DEFAULT}, and the address of a gateway."
            )
            continue
        if not any(ipaddress.ip_address(gateway) in network for network in networks):
            yield (
                f"{one.name} has the route to {to} via {via}, which is in no network of its addresses; "
                "give a gateway that it reaches."
            )


def _readable_routes(one: Interface) -> Iterator[tuple[str, str]]:
    """Yield routes in one spelling, without those that are none."""
    for pair in one.routes:
        with contextlib.suppress(ValueError):
            yield route(*pair)


def _together(interfaces: Iterable[Interface]) -> Iterator[str]:
    pairs = (
        (f"address {address.ip}", one.name)
        for one in interfaces
        for address in map(interface_address, one.addresses)
        if address
    )
    vlans = ((f"VLAN {one.vlan} over {one.over}", one.name) for one in interfaces if one.vlan)
    routes = (
        (f"route to {to} of IPv{6 if ':' in via else 4}", one.name)
        for one in interfaces
        for to, via in _readable_routes(one)
    )
    owners: dict[str, list[str]] = {}
    for thing, name in (*pairs, *vlans, *routes):
        owners.setdefault(thing, []).append(name)
    for thing, names in owners.items():
        if len(names) > 1:
            yield f"{' and '.join(names)} have the same {thing}; keep one of them."
