# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LNet, Lustre's network: what is declared, what lnetctl reports, and what has to be done about it. No I/O.

Sources: lnetctl(8); Lustre Operations Manual, "Configuring LNet" and "LNet Software Multi-Rail".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .nid import AddressError, parse_network, parse_nid

# lnet/utils/lnetconfig/liblnetconfig.c: keys of an interface, as `lnetctl export` names them.
TUNABLES = ("peer_timeout", "peer_credits", "peer_buffer_credits", "credits")
LND_TUNABLES = {
    "tcp": ("conns_per_peer",),
    "o2ib": (
        "peercredits_hiw",
        "map_on_demand",
        "concurrent_sends",
        "fmr_pool_size",
        "fmr_flush_trigger",
        "fmr_cache",
        "ntx",
        "conns_per_peer",
    ),
}
SETTINGS = (
    "numa_range",
    "max_interfaces",
    "discovery",
    "drop_asym_route",
    "retry_count",
    "transaction_timeout",
    "health_sensitivity",
    "recovery_interval",
    "router_sensitivity",
    "response_tracking",
    "recovery_limit",
    "max_recovery_ping_interval",
)
INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")


class Lnet(NamedTuple):
    """LNet of a machine.

    `networks`: tunables by network and interface; `routes`: hop and priority by network and gateway, None
    where nothing is said; `peers`: the NIDs by the first of them; `settings`: whole numbers by name.
    """

    networks: dict[str, dict[str, dict[str, int]]]
    routes: dict[tuple[str, str], tuple[Any, Any]]
    peers: dict[str, set[str]]
    settings: dict[str, int]


class Plan(NamedTuple):
    """Commands of lnetctl that take away, and what is added by one import after that.

    `cut` names the interfaces over which connections end.
    """

    removals: list[list[str]]
    additions: Lnet
    cut: list[str]

    @property
    def empty(self) -> bool:
        """Whether nothing has to be done."""
        return not (self.removals or any(self.additions))


def problems(
    prefix: str,
    networks: Sequence[Mapping[str, Any]],
    routes: Sequence[Mapping[str, Any]],
    peers: Sequence[Sequence[str]],
    settings: Mapping[str, Any],
) -> Iterator[str]:
    """Yield what is wrong with a declaration, each in one sentence.

    Args:
        prefix: what the names of the variables begin with, such as ``lustre_client_``.
        networks: ``name``, ``interfaces``, ``tunables`` each.
        routes: ``network``, ``gateway``, ``hop``, ``priority`` each.
        peers: NIDs of a machine each.
        settings: whole numbers by name.
    """
    yield from _network_problems(prefix, networks)
    local = set(_networks_of(networks))
    for route in routes:
        yield from _route_problems(prefix, route, local)
    for nids in peers:
        for nid in nids:
            try:
                parse_nid(str(nid))
            except AddressError as error:
                yield f"{prefix}peers has a NID that cannot be used: {error}."
    for name, value in settings.items():
        if name not in SETTINGS:
            yield f"{prefix}lnet has '{name}', which LNet does not have; it has {', '.join(SETTINGS)}."
        elif not _is_count(value):
            yield f"{prefix}lnet has {name} with '{value}', where a whole number belongs."


def _is_count(value: Any) -> bool:
    return isinstance(value, bool) is False and bool(re.fullmatch("[0-9]{1,9}", str(value)))


def _networks_of(networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in networks:
        try:
            yield parse_network(str(one.get("name", "")))
        except AddressError:
            continue


def _network_problems(prefix: str, networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in networks:
        unknown = sorted(set(one) - {"name", "interfaces", "tunables"})
        if unknown:
            yield f"{prefix}networks has '{unknown[0]}'; a network has name, interfaces and tunables."
            continue
        try:
            name = parse_network(str(one.get("name", "")))
        except AddressError as error:
            yield f"{prefix}networks names a network that does not exist: {error}."
            continue
        interfaces = one.get("interfaces") or []
        if not isinstance(interfaces, list) or not interfaces:
            yield f"{prefix}networks names no interface of {name}; list them in interfaces."
            continue
        for interface in interfaces:
            if not INTERFACE.fullmatch(str(interface)):
                yield f"{prefix}networks has '{interface}' in {name}, which is no name of an interface."
        if len(set(interfaces)) < len(interfaces):
            yield f"{prefix}networks names an interface of {name} twice."
        kind = name.rstrip("0123456789") if not name.startswith("o2ib") else "o2ib"
        known = (*TUNABLES, *LND_TUNABLES.get(kind, ()))
        for tunable, value in (one.get("tunables") or {}).items():
            if tunable not in known:
                yield (
                    f"{prefix}networks has the tunable '{tunable}' in {name}, which it does not have; it"
                    f" has {', '.join(known)}."
                )
            elif not _is_count(value):
                yield (
                    f"{prefix}networks has {tunable} with '{value}' in {name}, where a whole number belongs."
                )
    names = list(_networks_of(networks))
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{prefix}networks names {name} twice; list its interfaces together."


def _route_problems(prefix: str, route: Mapping[str, Any], local: set[str]) -> Iterator[str]:
    unknown = sorted(set(route) - {"network", "gateway", "hop", "priority"})
    if unknown:
        yield f"{prefix}routes has '{unknown[0]}'; a route has network, gateway, hop and priority."
        return
    try:
        network = parse_network(str(route.get("network", "")))
        gateway = parse_nid(str(route.get("gateway", "")))
    except AddressError as error:
        yield f"{prefix}routes cannot be used: {error}."
        return
    if network in local:
        yield f"{prefix}routes leads to {network}, which this machine is in itself; leave it out."
    if gateway.network not in local:
        yield (
            f"{prefix}routes goes by {gateway}, and no interface is in {gateway.network}; add it to"
            f" {prefix}networks."
        )
    for name, least, most in (("hop", 1, 255), ("priority", 0, 2147483647)):
        value = route.get(name, least)
        if not _is_count(value) or not least <= int(value) <= most:
            yield f"{prefix}routes has the {name} '{value}', where a number from {least} to {most} belongs."


def declared(
    networks: Sequence[Mapping[str, Any]],
    routes: Sequence[Mapping[str, Any]],
    peers: Sequence[Sequence[str]],
    settings: Mapping[str, Any],
) -> Lnet:
    """Return a declaration that problems() has nothing against."""
    return Lnet(
        {
            parse_network(one["name"]): {
                str(interface): {name: int(value) for name, value in (one.get("tunables") or {}).items()}
                for interface in one["interfaces"]
            }
            for one in networks
        },
        {
            (parse_network(route["network"]), str(parse_nid(route["gateway"]))): (
                route.get("hop") if route.get("hop") is None else int(route["hop"]),
                route.get("priority") if route.get("priority") is None else int(route["priority"]),
            )
            for route in routes
        },
        {str(parse_nid(nids[0])): {str(parse_nid(nid)) for nid in nids} for nids in peers if nids},
        {name: int(value) for name, value in settings.items()},
    )


def is_down(said: str) -> bool:
    """Whether lnetctl fails as LNet does not run: its modules are not loaded, or it is not configured.

    Sources: lnet/utils/lnetconfig/liblnetconfig.c, and from Lustre 2.16 liblnetconfig_netlink.c.

    Args:
        said: output and errors of ``lnetctl net show``.
    """
    known = ("/dev/lnet", "Network is down", "failed to resolve Netlink family id")
    return any(words in said for words in known)


def reported(export: Mapping[str, Any]) -> Lnet:
    """Return what lnetctl reports.

    Args:
        export: what ``lnetctl export`` prints, parsed as YAML.
    """
    networks: dict[str, dict[str, dict[str, int]]] = {}
    for net in export.get("net") or []:
        if net.get("net type") == "lo":
            continue
        interfaces = networks.setdefault(parse_network(str(net["net type"])), {})
        for one in net.get("local NI(s)") or []:
            found = {**(one.get("tunables") or {}), **(one.get("lnd tunables") or {})}
            for interface in (one.get("interfaces") or {}).values():
                interfaces[str(interface)] = {
                    name: value for name, value in found.items() if isinstance(value, int)
                }
    return Lnet(
        networks,
        {
            (str(route["net"]), str(route["gateway"])): (route.get("hop"), route.get("priority"))
            for route in export.get("route") or []
        },
        {
            str(peer["primary nid"]): {str(one["nid"]) for one in peer.get("peer ni") or []}
            for peer in export.get("peer") or []
        },
        {name: value for name, value in (export.get("global") or {}).items() if isinstance(value, int)},
    )


def plan(current: Lnet, wanted: Lnet) -> Plan:
    """Compare what is with what is wanted.

    Interfaces and routes that nobody declared are taken away; peers stay, as LNet finds them itself. An
    interface with another tunable is taken away and added again, which is how LNet changes one.
    """
    removals: list[list[str]] = []
    cut: list[str] = []
    networks: dict[str, dict[str, dict[str, int]]] = {}
    routes = {}
    for key, way in wanted.routes.items():
        there = current.routes.get(key)
        if there is None or way[0] not in (None, there[0]) or way[1] not in (None, there[1]):
            routes[key] = way
    for key in current.routes:
        if key not in wanted.routes or key in routes:
            removals.append(["route", "del", "--net", key[0], "--gateway", key[1]])
    for name, interfaces in current.networks.items():
        for interface, tunables in interfaces.items():
            target = wanted.networks.get(name, {}).get(interface)
            if target is None or any(tunables.get(key) != value for key, value in target.items()):
                removals.append(["net", "del", "--net", name, "--if", interface])
                cut.append(f"{interface} of {name}")
    for name, interfaces in wanted.networks.items():
        for interface, target in interfaces.items():
            there_now = current.networks.get(name, {}).get(interface)
            if there_now is None or any(there_now.get(key) != value for key, value in target.items()):
                networks.setdefault(name, {})[interface] = target
    peers = {
        first: nids for first, nids in wanted.peers.items() if not nids <= current.peers.get(first, set())
    }
    settings = {name: value for name, value in wanted.settings.items() if current.settings.get(name) != value}
    return Plan(removals, Lnet(networks, routes, peers, settings), cut)


def to_yaml(lnet: Lnet) -> str:
    """Return what ``lnetctl import`` and ``/etc/lnet.conf`` take."""
    lines: list[str] = []
    if lnet.networks:
        lines.append("net:")
    for name, interfaces in lnet.networks.items():
        lines += [f"    - net type: {name}", "      local NI(s):"]
        for interface, tunables in interfaces.items():
            lines += ["        - interfaces:", f"              0: {interface}"]
            common = {key: value for key, value in tunables.items() if key in TUNABLES}
            own = {key: value for key, value in tunables.items() if key not in TUNABLES}
            for title, group in (("tunables", common), ("lnd tunables", own)):
                if group:
                    lines.append(f"          {title}:")
                    lines += [f"              {key}: {value:d}" for key, value in sorted(group.items())]
    if lnet.routes:
        lines.append("route:")
    for (network, gateway), (hop, priority) in lnet.routes.items():
        lines += [f"    - net: {network}", f"      gateway: {gateway}"]
        lines += [f"      hop: {hop}"] if hop is not None else []
        lines += [f"      priority: {priority}"] if priority is not None else []
    if lnet.peers:
        lines.append("peer:")
    for first, nids in lnet.peers.items():
        lines += [f"    - primary nid: {first}", "      Multi-Rail: True", "      peer ni:"]
        lines += [f"        - nid: {nid}" for nid in [first, *sorted(nids - {first})]]
    if lnet.settings:
        lines.append("global:")
        lines += [f"    {name}: {value:d}" for name, value in sorted(lnet.settings.items())]
    return "".join(line + "\n" for line in lines)


def shown(lnet: Lnet, wanted: Lnet) -> str:
    """Return of LNet what a declaration speaks of, for a diff."""
    kept = {
        name: {
            interface: {
                key: value
                for key, value in tunables.items()
                if key in wanted.networks.get(name, {}).get(interface, {})
            }
            for interface, tunables in interfaces.items()
        }
        for name, interfaces in lnet.networks.items()
    }
    routes = {key: _as_said(way, wanted.routes.get(key, way)) for key, way in lnet.routes.items()}
    return to_yaml(
        Lnet(
            kept,
            dict(sorted(routes.items())),
            {
                first: nids & wanted.peers[first]
                for first, nids in lnet.peers.items()
                if first in wanted.peers
            },
            {name: value for name, value in lnet.settings.items() if name in wanted.settings},
        )
    )


def _as_said(way: tuple[Any, Any], said: tuple[Any, Any]) -> tuple[Any, Any]:
    return (None if said[0] is None else way[0], None if said[1] is None else way[1])
