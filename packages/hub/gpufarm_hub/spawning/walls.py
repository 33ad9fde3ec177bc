# SPDX-License-Identifier: GPL-3.0-or-later
"""The walls around notebooks: who may send packets to them, and where theirs may go. No I/O.

One list of rules holds for every engine. Each notebook has a network of its own: a namespace at the end of an
interface ``jhub-...``, or what its engine makes behind a bridge.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

TABLE = "inet jupyterhub_notebooks"
NAMESPACE = "jhub-"  # and the last two numbers of the address: a notebook's namespace, and its interface here

# Metadata services of clouds: RFC 3927, where most clouds have it; Alibaba Cloud; Azure's wire server.
METADATA = ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32")
# RFC 1918 and RFC 6598.
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")

NAMES = "meta l4proto { tcp, udp } th dport 53 accept"


@dataclass(frozen=True)
class Bridge:
    """A network that an engine makes for its notebooks.

    Attributes:
        interface: the machine's end of it; at most 15 characters (Linux, IFNAMSIZ).
        subnet: its addresses, of which the first is the machine's.
        hub_port: TCP port at which notebooks reach the hub there.
    """

    interface: str
    subnet: str
    hub_port: int


@dataclass(frozen=True)
class Walls:
    """Input of the rules.

    Attributes:
        subnet: addresses of notebooks in namespaces (`network_of`).
        bridges: networks of other notebooks.
        callers: user ids of the services that may open connections to notebooks, beside root.
        attached: networks that the machine is in.
        networks: networks of the site that notebooks may reach.
        internet: whether they may reach all other addresses, too.
    """

    subnet: str
    bridges: tuple[Bridge, ...]
    callers: tuple[int, ...]
    attached: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    internet: bool = True


def hub_address(subnet: str) -> str:
    """Return the address of the machine in a network of notebooks."""
    return str(next(ipaddress.ip_network(subnet).hosts()))


def name_of(address: str) -> str:
    """Return what a notebook's units, namespace and interface are called by: two numbers of its address."""
    return ".".join(address.split(".")[2:])


def network_of(address: str) -> dict[str, str | list[str]]:
    """Return the properties that give a unit the namespace of an address, and its way to the hub.

    The units of both are there as long as the unit requires them.
    """
    name = name_of(address)
    units = [f"jupyterhub-wall@{name}.service", f"jupyterhub-door@{name}.socket"]
    return {"NetworkNamespacePath": f"/run/netns/{NAMESPACE}{name}", "Requires": units, "After": units}


def rules(walls: Walls) -> str:
    """Return the rules as `nft` takes them; they replace those that are there in one step.

    Blocked connections are rejected at once, so that no program waits for them. A name server may be
    anywhere: several clouds have theirs beside their metadata services.
    """
    interfaces = ", ".join(f'"{one}"' for one in (f"{NAMESPACE}*", *(one.interface for one in walls.bridges)))
    notebooks = f"{{ {interfaces} }}"
    gates = "\n    ".join(
        f'iifname "{one.interface}" ip daddr {hub_address(one.subnet)} tcp dport {one.hub_port} accept'
        for one in walls.bridges
    )
    callers = ", ".join(map(str, sorted({0, *walls.callers})))
    open_networks = f"ip daddr {_set(walls.networks)} accept" if walls.networks else ""
    return f"""\
table {TABLE}
delete table {TABLE}
table {TABLE} {{
  chain input {{
    type filter hook input priority filter - 5; policy accept;
    iifname {notebooks} jump to_machine
  }}
  chain to_machine {{
    fib saddr . iif oif missing drop
    ct state established,related accept
    {gates}
    # The machine may be its own name server.
    {NAMES}
    reject
  }}
  chain forward {{
    type filter hook forward priority filter - 5; policy accept;
    iifname {notebooks} jump to_world
    oifname {notebooks} jump from_world
  }}
  chain to_world {{
    fib saddr . iif oif missing drop
    oifname {notebooks} reject
    meta nfproto ipv6 reject
    {NAMES}
    ip daddr {_set(METADATA)} reject
    {open_networks}
    ip daddr {_set([*PRIVATE, *walls.attached])} reject
    {"accept" if walls.internet else "reject"}
  }}
  chain from_world {{
    ct state established,related accept
    drop
  }}
  chain output {{
    type filter hook output priority filter - 5; policy accept;
    oifname {notebooks} jump from_machine
  }}
  chain from_machine {{
    ct state established,related accept
    meta skuid {{ {callers} }} accept
    reject
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {walls.subnet} oifname != "{NAMESPACE}*" masquerade
  }}
}}
"""


def _set(networks: Iterable[str]) -> str:
    """Return a set of `nft`, in which no network lies in another."""
    given = (ipaddress.IPv4Network(network, strict=False) for network in networks)
    merged = ipaddress.collapse_addresses(given)
    return f"{{ {', '.join(map(str, merged))} }}"


def resolv_conf(text: str, hub: str) -> str:
    """Return a resolv.conf(5) for notebooks: a name server at the machine's loopback is at the hub's address.

    Args:
        text: the machine's.
        hub: address of the machine in the network of notebooks.
    """
    return "".join(
        f"nameserver {hub}\n" if _is_at_loopback(line) else line for line in text.splitlines(keepends=True)
    )


def _is_at_loopback(line: str) -> bool:
    words = line.split()
    return len(words) > 1 and words[0] == "nameserver" and (words[1].startswith("127.") or words[1] == "::1")
