# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of systemd-networkd: those of declared interfaces, and which file of others it would use. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from .request import BOND, DEFAULT, LACP, USUAL_MTU, VLAN, Interface, route

FOLDER = "/etc/systemd/network"
# The first file that matches an interface is used, in the order of names (systemd.network(5)). The network
# generator of systemd, netplan and cloud-init begin theirs with 10 or more.
PREFIX = "05-gpufarm-"
_MARK = "# Written by the role network of gpufarm.cluster; changes are lost.\n"

Sections = Sequence[tuple[str, Mapping[str, Sequence[Any]]]]


def render(interfaces: Iterable[Interface]) -> dict[str, str]:
    """Return the files of interfaces by their names."""
    wanted = list(interfaces)
    found: dict[str, str] = {}
    for one in wanted:
        if one.kind in (BOND, VLAN):
            found[f"{PREFIX}{one.name}.netdev"] = _text(_device(one))
        found[f"{PREFIX}{one.name}.network"] = _text(_network(one, wanted))
        for member in one.members:
            primary = ["yes"] if member == one.primary else []
            found[f"{PREFIX}{member}.network"] = _text(
                [("Match", {"Name": [member]}), ("Network", {"Bond": [one.name], "PrimarySlave": primary})]
            )
    return found


def _device(one: Interface) -> Sections:
    head: dict[str, list[Any]] = {"Name": [one.name], "Kind": [one.kind]}
    if one.kind == VLAN:
        return [("NetDev", head), ("VLAN", {"Id": [one.vlan]})]
    # Members take the MTU of a bond when they join, and networkd may have them join before it sets that of
    # the file .network. Hardware that cannot have the usual one then stays outside.
    if 0 < one.mtu < USUAL_MTU:
        head["MTUBytes"] = [one.mtu]
    settings: dict[str, list[Any]] = {"Mode": [one.mode], "MIIMonitorSec": ["100ms"]}
    if one.mode == LACP:
        # A switch that no longer answers is noticed in 3 seconds in place of 90 (IEEE 802.1AX, 6.4.4), and
        # connections between the same two machines use several links.
        settings |= {"LACPTransmitRate": ["fast"], "TransmitHashPolicy": ["layer3+4"]}
    return [("NetDev", head), ("Bond", settings)]


def _network(one: Interface, interfaces: Iterable[Interface]) -> Sections:
    network: dict[str, list[Any]] = {
        "Address": [ipaddress.ip_interface(text) for text in one.addresses],
        "VLAN": [other.name for other in interfaces if other.over == one.name],
        # Addresses and routes are the declared ones only.
        "IPv6AcceptRA": ["no"],
    }
    routes = [
        ("Route", {"Destination": [] if to == DEFAULT else [to], "Gateway": [via]})
        for to, via in (route(*pair) for pair in one.routes)
    ]
    return [
        ("Match", {"Name": [one.name]}),
        ("Link", {"MTUBytes": [one.mtu] if one.mtu else []}),
        ("Network", network),
        *routes,
    ]


def _text(sections: Sections) -> str:
    lines = [
        "\n".join([f"[{name}]", *(f"{key}={value}" for key, values in pairs.items() for value in values)])
        for name, pairs in sections
        if any(pairs.values())
    ]
    return _MARK + "\n\n".join(lines) + "\n"


def values(text: str, section: str) -> Iterator[tuple[str, str]]:
    """Return keys and values of all sections of a name, as systemd.syntax(7) has them."""
    current = ""
    for line in text.replace("\\\n", " ").splitlines():
        stripped = line.strip()
        if stripped.startswith("[") and stripped.endswith("]"):
            current = stripped[1:-1]
        elif current == section and "=" in stripped and stripped[0] not in "#;":
            key, _sign, value = stripped.partition("=")
            yield key.strip(), value.strip()


def value(text: str, section: str, key: str) -> str:
    """Return the first value of a key; empty if there is none."""
    return next((found for name, found in values(text, section) if name == key), "")


def hides(files: Mapping[str, str], own: str, names: Iterable[str], hardware: str) -> str:
    """Return the file of others that networkd may use in place of an own file; empty if there is none.

    A condition that cannot be checked here, such as one about the driver, counts as met.

    Args:
        files: texts of files of others by their paths.
        own: name of the own file.
        names: names of the interface, also other ones.
        hardware: its permanent hardware address; empty if it has none yet.
    """
    earlier = [
        path
        for path in files
        if path.endswith(".network")
        and files[path]  # an empty one only hides others of its name
        and path.rpartition("/")[2] < own
        and _may_match(files[path], names, hardware)
    ]
    return min(earlier, key=lambda path: path.rpartition("/")[2], default="")


def _may_match(text: str, names: Iterable[str], hardware: str) -> bool:
    conditions = list(values(text, "Match"))
    patterns = [word for key, found in conditions if key == "Name" for word in found.split()]
    addresses = [
        word
        for key, found in conditions
        if key in ("MACAddress", "PermanentMACAddress")
        for word in found.lower().replace("-", ":").split()
    ]
    return (not patterns or _named(patterns, names)) and (not addresses or hardware.lower() in addresses)


def _named(patterns: Sequence[str], names: Iterable[str]) -> bool:
    """A list that begins with an exclamation mark means the names that match none of it."""
    inverted = patterns[0].startswith("!")
    words = [patterns[0].lstrip("!"), *patterns[1:]]
    return any(fnmatchcase(name, word) for name in names for word in words) != inverted


def of_ifupdown(text: str) -> set[str]:
    """Return the names and patterns of interfaces that a file of ifupdown configures (interfaces(5))."""
    found: set[str] = set()
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split()
        if words and words[0] == "iface":
            found.update(words[1:2])
        elif words and (words[0] == "auto" or words[0].startswith("allow-")):
            found.update(words[1:])
    return found
