# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine can have declared interfaces, and whether it has them. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from . import files
from .request import BOND, ETHERNET, LACP, USUAL_MTU, VLAN, Interface, devices, route

Link = Mapping[str, Any]
# ad_info has it while no partner answers (bond_3ad.c, MULTICAST_LACPDU_ADDR aside).
NO_PARTNER = "00:00:00:00:00:00"


def by_name(links: Iterable[Link]) -> dict[str, Link]:
    """Return what `ip -json -details address show` prints of each interface, by its name."""
    return {link["ifname"]: link for link in links}


def addresses(link: Link) -> list[str]:
    """Return the addresses of an interface that others reach, in CIDR notation."""
    return [f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"] if one["scope"] == "global"]


def problems(interfaces: Sequence[Interface], machine: Mapping[str, Any]) -> list[str]:
    """Return why a machine cannot have interfaces, a sentence for each reason.

    Args:
        interfaces: interfaces without contradictions.
        machine: the result of the module `network_info`, and the `name` of the machine.
    """
    name = machine["name"]
    if not machine["networkd"]["running"]:
        return [
            f"systemd-networkd does not run on {name}, and the role network configures nothing else; "
            "let it have the interfaces of the machine (systemctl enable --now systemd-networkd)."
        ]
    found = [
        *_devices(interfaces, machine),
        *_others(interfaces, machine),
        *_connection(interfaces, machine),
    ]
    return [f"{name}: {problem}" for problem in found]


def _devices(interfaces: Sequence[Interface], machine: Mapping[str, Any]) -> Iterator[str]:
    links = by_name(machine["links"])
    made = {one.name: one for one in interfaces if one.kind != ETHERNET}
    for name in devices(interfaces):
        link = links.get(name)
        if link is None:
            there = ", ".join(one for one in links if one != "lo")
            yield f"there is no interface {name}, only {there}; correct network_interfaces, or the cabling."
            continue
        master = link.get("master", "")
        if master and not _is_ours(master, machine):
            yield f"{name} is part of {master}, which is not of the role network; take it out of that first."
        if link.get("linkinfo", {}).get("info_kind") in (BOND, VLAN) and name not in made:
            yield f"{name} is a {link['linkinfo']['info_kind']}; declare its members, or vlan and over."
    for one in interfaces:
        # A new bond begins with the usual one, and has its members take it.
        wanted = one.mtu or (USUAL_MTU if one.kind == BOND else 0)
        limits = [links[name].get("max_mtu", 0) for name in one.members or (one.name,) if name in links]
        limit = min((limit for limit in limits if limit), default=wanted)
        if one.kind != VLAN and limit < wanted:
            yield (
                f"{one.name} would have an MTU of {wanted} bytes, and its hardware can have {limit} at most; "
                "give it an mtu of no more than that."
            )
    for one in made.values():
        if one.name in links and not _is_ours(one.name, machine):
            yield f"{one.name} is there and not of the role network; choose another name, or remove it first."


def _is_ours(name: str, machine: Mapping[str, Any]) -> bool:
    return f"{files.FOLDER}/{files.PREFIX}{name}.netdev" in machine["files"]


def _others(interfaces: Sequence[Interface], machine: Mapping[str, Any]) -> Iterator[str]:
    links = by_name(machine["links"])
    ours = f"{files.FOLDER}/{files.PREFIX}"
    foreign = {path: text for path, text in machine["files"].items() if not path.startswith(ours)}
    present = devices(interfaces)
    for name in present:
        for path, text in machine["ifupdown"].items():
            if any(fnmatchcase(name, pattern) for pattern in files.of_ifupdown(text)):
                yield f"{name} is configured by ifupdown in {path}; let systemd-networkd have it first."
        if name in machine["networkmanager"]:
            yield f"{name} is configured by NetworkManager; let systemd-networkd have it first."
        link = links.get(name)
        if link and addresses(link) and not machine["networkd"]["files"].get(name):
            yield (
                f"{name} has {addresses(link)[0]}, which systemd-networkd has not given and could not give "
                "back; write it into a file of systemd-networkd first."
            )
    for name in dict.fromkeys([*present, *(one.name for one in interfaces)]):
        link = links.get(name, {})
        path = files.hides(
            foreign,
            f"{files.PREFIX}{name}.network",
            [name, *link.get("altnames", [])],
            link.get("permaddr", link.get("address", "")),
        )
        if path:
            yield (
                f"{path} sorts before the files of the role network and may match {name}; give it a name "
                f"that sorts after {files.PREFIX}, or narrow its section Match."
            )


def _connection(interfaces: Sequence[Interface], machine: Mapping[str, Any]) -> Iterator[str]:
    """Ansible would not get back to a machine that loses the address of its connection, or has it twice."""
    connection = machine["connection"] and ipaddress.ip_address(machine["connection"])
    named = {*devices(interfaces), *(one.name for one in interfaces)}
    declared = {ipaddress.ip_interface(text).ip for one in interfaces for text in one.addresses}
    for link in machine["links"]:
        name = link["ifname"]
        # An interface of an earlier run loses its addresses.
        touched = name in named or f"{files.FOLDER}/{files.PREFIX}{name}.network" in machine["files"]
        for address in (ipaddress.ip_interface(text).ip for text in addresses(link)):
            if touched and address == connection and address not in declared:
                yield (
                    f"Ansible is connected to {address} of {name}, and no declared interface has that "
                    "address; add it to the one that replaces it."
                )
            elif not touched and address in declared:
                yield f"{name} has {address} already; declare {name} too, or another address."


def expected(interfaces: Iterable[Interface]) -> list[dict[str, Any]]:
    """Return what must be true of interfaces, for `deviations`."""
    return [
        {
            "name": one.name,
            "kind": one.kind,
            "members": list(one.members),
            "mode": one.mode,
            "vlan": one.vlan,
            "over": one.over,
            "mtu": one.mtu,
            "speed": one.speed,
            "addresses": [str(ipaddress.ip_interface(text)) for text in one.addresses],
            "routes": [list(route(*pair)) for pair in one.routes],
        }
        for one in interfaces
    ]


def deviations(
    wanted: Iterable[Mapping[str, Any]],
    links: Iterable[Link],
    routes: Iterable[Mapping[str, Any]],
    speeds: Mapping[str, int],
) -> list[str]:
    """Return how interfaces differ from what is expected, a sentence for each difference.

    Args:
        wanted: the result of `expected`.
        links: what `ip -json -details address show` prints (ip-address(8)).
        routes: what `ip -json route show` prints for IPv4 and IPv6.
        speeds: Mbit/s of each interface that tells them.
    """
    there, ways = by_name(links), list(routes)
    return [difference for one in wanted for difference in _differences(one, there, ways, speeds)]


def _differences(
    one: Mapping[str, Any],
    links: Mapping[str, Link],
    routes: Sequence[Mapping[str, Any]],
    speeds: Mapping[str, int],
) -> Iterator[str]:
    name, link = one["name"], links.get(one["name"])
    if link is None:
        yield f"{name} is not there."
        return
    if link["operstate"] != "UP":
        yield f"{name} is {link['operstate']}."
    if one["mtu"] and link["mtu"] != one["mtu"]:
        yield f"{name} has an MTU of {link['mtu']} bytes, not {one['mtu']}."
    for address in one["addresses"]:
        if address not in addresses(link):
            yield f"{name} does not have the address {address}."
    for to, via in one["routes"]:
        # ip leaves out the length of the prefix of a single address.
        spellings = (to, to.partition("/")[0]) if to.endswith(("/32", "/128")) else (to,)
        if not any(
            way["dst"] in spellings and way.get("gateway") == via and way["dev"] == name for way in routes
        ):
            yield f"{name} does not have the route to {to} via {via}."
    if one["kind"] == VLAN:
        data = link.get("linkinfo", {}).get("info_data", {})
        if data.get("id") != one["vlan"] or link.get("link") != one["over"]:
            yield f"{name} is not the VLAN {one['vlan']} over {one['over']}."
    if one["kind"] == BOND:
        yield from _bond(one, link, links)
    for part in one["members"] or [name]:
        if one["speed"] and speeds.get(part, -1) < one["speed"]:
            yield f"{part} has {speeds.get(part, 'no known')} Mbit/s, not {one['speed']} or more."


def _bond(one: Mapping[str, Any], link: Link, links: Mapping[str, Link]) -> Iterator[str]:
    name = one["name"]
    data = link.get("linkinfo", {}).get("info_data", {})
    if data.get("mode") != one["mode"]:
        yield f"{name} is in mode {data.get('mode', 'none')}, not {one['mode']}."
        return
    aggregate = data.get("ad_info", {})
    if one["mode"] == LACP and aggregate.get("partner_mac", NO_PARTNER) == NO_PARTNER:
        yield f"{name} has no partner: nothing at the other end of its links speaks LACP."
    for member in one["members"]:
        part = links.get(member, {})
        state = part.get("linkinfo", {}).get("info_slave_data", {})
        if part.get("master") != name:
            yield f"{member} is not in {name}."
        elif state.get("mii_status") != "UP":
            yield f"{member} of {name} has no link."
        elif one["mode"] == LACP and state.get("ad_aggregator_id") != aggregate.get("aggregator"):
            yield (
                f"{member} is not in the aggregator of {name} that carries data: its link ends at another "
                "partner, or at none."
            )
    more = [
        part for part, other in links.items() if other.get("master") == name and part not in one["members"]
    ]
    if more:
        yield f"{name} has {', '.join(more)} too."


def summary(name: str, links: Iterable[Link], speeds: Mapping[str, int]) -> dict[str, Any]:
    """Return `name`, `addresses`, `mtu`, `speed` and `partner` of an interface.

    The MTU is in bytes and the speed in Mbit/s, 0 if it is unknown; without LACP the partner is empty.
    """
    link = by_name(links)[name]
    info = link.get("linkinfo", {}).get("info_data", {}).get("ad_info", {})
    return {
        "name": name,
        "addresses": addresses(link),
        "mtu": link["mtu"],
        "speed": max(speeds.get(name, 0), 0),
        "partner": info.get("partner_mac", ""),
    }
