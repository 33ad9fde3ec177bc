# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails of a fabric: what a site declares, and which port of a machine each one is. No I/O."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._cidr import networks

INFINIBAND, ROCE, SOFT_ROCE = "infiniband", "roce", "soft_roce"
PROCESSES, DATA = "processes", "data"
# A rail of soft RoCE gives its name to a device and a unit.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")
_PCI = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
# Names of devices and interfaces, and a port as UCX and NCCL write it.
_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[0-9]{1,3})?")
# The link layer of each type, as the kernel calls it.
LAYERS = {INFINIBAND: "InfiniBand", ROCE: "Ethernet", SOFT_ROCE: "Ethernet"}


# The defaults of the argument spec, for an entry that leaves values out.
_DEFAULTS = {"type": INFINIBAND, "purpose": PROCESSES, "speed": 0, "mode": "datagram"}


def declared(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of `fabric_rails` with the values that they leave out."""
    return [
        {**_DEFAULTS, **{key: value for key, value in entry.items() if value is not None}}
        for entry in entries
    ]


@dataclass(frozen=True)
class Rail:
    """A rail on a machine.

    `name`, `type`, `purpose`, `speed` (Gbit/s) and `mode` are as declared; `adapter` is the RDMA device,
    `port` its port, and `interface` the one that carries IP there, empty without one. `networks` in CIDR
    notation are the declared one, or those of the interface.
    """

    name: str
    type: str
    purpose: str
    speed: int
    mode: str
    adapter: str
    port: int
    interface: str
    networks: tuple[str, ...]

    @property
    def device(self) -> str:
        """Device and port as UCX and NCCL write them."""
        return f"{self.adapter}:{self.port}"


def problems(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield why no machine can have such rails, a sentence for each reason."""
    for one in entries:
        if not _NAME.fullmatch(one["name"]):
            yield (
                f"fabric_rails has the name {one['name']!r}; use 1 to 15 lower-case letters, digits and "
                "underscores, a letter first."
            )
        yield from _problems_of_device(one["name"], one["device"])
        if one["mode"] == "connected" and one["type"] != INFINIBAND:
            yield f"The rail {one['name']} is {one['type']} and has the mode connected, which only IPoIB has."
        if one["speed"] < 0:
            yield f"The rail {one['name']} has the speed {one['speed']}; give Gbit/s, or 0 for any."
    for key in ("name", "device"):
        for value, number in Counter(one[key] for one in entries).items():
            if number > 1:
                yield f"fabric_rails has the {key} {value} {number} times; declare each rail once."


def _problems_of_device(name: str, device: str) -> Iterator[str]:
    if "/" in device:
        yield from networks(f"The rail {name} of fabric_rails", [device])[1]
    elif not (_PCI.fullmatch(device) or _DEVICE.fullmatch(device)):
        yield (
            f"The rail {name} of fabric_rails has the device {device!r}; give the name of an RDMA device or "
            "of an interface, a PCI address, or a network."
        )


def find(entries: Sequence[Mapping[str, Any]], machine: Mapping[str, Any]) -> tuple[list[Rail], list[str]]:
    """Return the rails of a machine, and why it cannot have those that are declared.

    Args:
        entries: rails without contradictions, as `declared` returns them.
        machine: the result of the module `fabric_info`, and the `name` of the machine.
    """
    rails: list[Rail] = []
    wrong: list[str] = []
    for one in entries:
        found = _soft(one, machine) if one["type"] == SOFT_ROCE else _hard(one, machine)
        if isinstance(found, str):
            wrong.append(f"{machine['name']}: {found}")
        else:
            rails.append(found)
    for device, number in Counter(rail.device for rail in rails).items():
        if number > 1:
            names = ", ".join(rail.name for rail in rails if rail.device == device)
            wrong.append(f"{machine['name']}: {names} are all {device}; declare one rail for each port.")
    return rails, wrong


def _soft(one: Mapping[str, Any], machine: Mapping[str, Any]) -> Rail | str:
    name = one["name"]
    if not machine["soft_roce"]:
        return (
            f"the kernel {machine['kernel']} has no module rdma_rxe, which the rail {name} needs; boot a "
            "kernel of the distribution with all drivers (linux-image-amd64), on a machine that is no "
            "container."
        )
    interface = _interface(one, machine)
    if isinstance(interface, str):
        return interface
    if interface["kind"] != "ethernet":
        return (
            f"{interface['name']} is no Ethernet, over which alone soft RoCE goes; take another device for "
            f"{name}."
        )
    for adapter in machine["adapters"]:
        if adapter["name"] == name and adapter["parent"] != interface["name"]:
            return (
                f"there is an RDMA device {name} already, which is not on {interface['name']}; give the rail "
                "another name, or remove the device with 'rdma link delete'."
            )
    return _rail(one, name, 1, interface["name"], machine)


def _hard(one: Mapping[str, Any], machine: Mapping[str, Any]) -> Rail | str:
    name, wanted = one["name"], one["device"]
    # Those that interfaces of others carry are no hardware.
    real = [adapter for adapter in machine["adapters"] if not adapter["parent"]]
    if not real:
        return (
            f"the kernel drives no RDMA adapter, and the rail {name} needs one; see to the adapter and its "
            "driver with 'lspci' and 'journalctl -k', or declare soft_roce."
        )
    if "/" in wanted or any(one["name"] == wanted for one in machine["interfaces"]):
        interface = _interface(one, machine)
        if isinstance(interface, str):
            return interface
        ports = [
            (adapter, port)
            for adapter in real
            for port in adapter["ports"]
            if port["interface"] == interface["name"]
        ]
        if not ports:
            return (
                f"{interface['name']} belongs to no RDMA adapter, and the rail {name} needs one; take "
                f"another device for it: {_there(real)}."
            )
    else:
        ports = list(_named(wanted, real))
    if len(ports) != 1:
        reason = f"{wanted} has {len(ports)} ports" if ports else f"there is no RDMA device {wanted}"
        return f"{reason}, and the rail {name} needs one port; take one of {_there(real)}."
    adapter, port = ports[0]
    if port["link_layer"] != LAYERS[one["type"]]:
        return (
            f"port {port['number']} of {adapter['name']} speaks {port['link_layer']}, and the rail {name} is "
            f"{one['type']}; correct the type, or the adapter's."
        )
    return _rail(one, adapter["name"], port["number"], port["interface"], machine)


def _interface(one: Mapping[str, Any], machine: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the interface that a device means, or why there is none."""
    wanted = one["device"]
    if "/" in wanted:
        network = ipaddress.IPv4Network(wanted)
        found = [
            interface
            for interface in machine["interfaces"]
            if any(ipaddress.IPv4Interface(text).ip in network for text in interface["addresses"])
        ]
    else:
        found = [one for one in machine["interfaces"] if wanted in (one["name"], one["pci"])]
    if len(found) == 1:
        return found[0]
    names = ", ".join(interface["name"] for interface in found)
    if not found:
        what = (
            f"no interface has an address in {wanted}" if "/" in wanted else f"there is no interface {wanted}"
        )
        return f"{what}, which the rail {one['name']} of fabric_rails has; correct it, or the machine."
    return f"{names} all are {wanted}, and the rail {one['name']} needs one; name its device."


def _named(wanted: str, adapters: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Any, Any]]:
    name, _sign, number = ("", "", "") if _PCI.fullmatch(wanted) else wanted.partition(":")
    for adapter in adapters:
        if adapter["name"] == name or (adapter["pci"] and adapter["pci"] == wanted.lower()):
            for port in adapter["ports"]:
                if number in ("", str(port["number"])):
                    yield adapter, port


def _there(adapters: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['name']}:{port['number']}" for one in adapters for port in one["ports"])


def _rail(
    one: Mapping[str, Any], adapter: str, port: int, interface: str, machine: Mapping[str, Any]
) -> Rail:
    networks_of = [
        str(ipaddress.IPv4Interface(text).network)
        for other in machine["interfaces"]
        if other["name"] == interface
        for text in other["addresses"]
    ]
    return Rail(
        name=one["name"],
        type=one["type"],
        purpose=one["purpose"],
        speed=one["speed"],
        mode=one["mode"],
        adapter=adapter,
        port=port,
        interface=interface,
        # A declared one is that of all machines, and stays while a link is down.
        networks=(one["device"],) if "/" in one["device"] else tuple(dict.fromkeys(networks_of)),
    )


def deviations(rails: Iterable[Rail], machine: Mapping[str, Any]) -> list[str]:
    """Return how rails of a machine differ from what is declared, a sentence for each difference."""
    return [difference for rail in rails for difference in _differences(rail, machine)]


def port_of(rail: Rail, machine: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return adapter and port of a rail as the machine has them; None if it does not."""
    for adapter in machine["adapters"]:
        for port in adapter["ports"]:
            if (adapter["name"], port["number"]) == (rail.adapter, rail.port):
                return adapter, port
    return None


def _differences(rail: Rail, machine: Mapping[str, Any]) -> Iterator[str]:
    found = port_of(rail, machine)
    if found is None:
        yield f"The rail {rail.name} has no device {rail.device}."
        return
    port = found[1]
    if port["state"] != "ACTIVE":
        yield f"The rail {rail.name} ({rail.device}) is {port['state']}, its link {port['physical_state']}."
    elif port["rate"] < rail.speed:
        yield f"The rail {rail.name} ({rail.device}) has {port['rate']:g} Gbit/s, not {rail.speed} or more."
    mode = other_mode(rail, machine)
    if mode:
        yield f"{rail.interface} of the rail {rail.name} is in the mode {mode}, not {rail.mode}."


def other_mode(rail: Rail, machine: Mapping[str, Any]) -> str:
    """Return the mode of IPoIB that the interface of a rail is in; empty if it is the declared one."""
    mode = next((one["mode"] for one in machine["interfaces"] if one["name"] == rail.interface), "")
    return "" if mode == rail.mode else str(mode)
