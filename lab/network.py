"""The network of a bench: a bridge with its own 10.77.<n>.0/24, NAT to the outside, a link per host.

Every name is derived from the bench's id, so a network is found and removed without any record of it.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import ipaddress
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.patience import PATIENCE
from lab.spec import NICS
from lab.system import locked, run

SUPERNET = ipaddress.IPv4Network("10.77.0.0/16")
SECOND = ipaddress.IPv4Network("10.78.0.0/16")
LOCK = Path("/run/lock/gpufarm-lab-network.lock")
# .1 is the bridge; the last ones stay free for what a test may want to add by hand.
FIRST_HOST, LAST_HOST = 11, 250

# A systemd host takes a handful of inotify instances: the kernel's default of 128 ends at about 20 hosts.
# Each session has keyrings (keyrings(7)); neighbour entries are counted over all network namespaces (arp(7)).
SYSCTLS = {
    "net.ipv4.ip_forward": 1,
    "fs.inotify.max_user_instances": 8192,
    "fs.inotify.max_user_watches": 1048576,
    "kernel.keys.maxkeys": 20000,
    "kernel.keys.maxbytes": 2000000,
    "net.ipv4.neigh.default.gc_thresh2": 4096,
    "net.ipv4.neigh.default.gc_thresh3": 8192,
}


def free_subnet(used: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """The first /24 of the bench's address space that overlaps nothing in use.

    :raises LabError: when all are taken.
    """
    taken = list(used)
    for subnet in SUPERNET.subnets(new_prefix=24):
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    raise LabError(
        f"all 256 networks of {SUPERNET} are in use on this machine: "
        "take a bench down with lab --bench NAME down"
    )


def free_addresses(subnet: ipaddress.IPv4Network, taken: Iterable[str], count: int) -> list[str]:
    """The first free host addresses of a bench.

    :raises LabError: when the bench has fewer left.
    """
    used = set(taken)
    base = int(subnet.network_address)
    free = [str(ipaddress.IPv4Address(base + last)) for last in range(FIRST_HOST, LAST_HOST + 1)]
    free = [address for address in free if address not in used]
    if len(free) < count:
        raise LabError(
            f"a bench has room for {LAST_HOST - FIRST_HOST + 1} hosts: {count} more were asked for, "
            f"{len(free)} fit; use a second bench"
        )
    return free[:count]


def second_address(address: str) -> str:
    """Address of a host's second interface, in a network that only the second interfaces have."""
    offset = int(SECOND.network_address) - int(SUPERNET.network_address)
    return str(ipaddress.IPv4Address(address) + offset)


@dataclass(frozen=True)
class Network:
    """The network of one bench.

    :param bench: id of the bench, 8 hexadecimal digits (interface names have at most 15 characters).
    """

    bench: str

    @property
    def bridge(self) -> str:
        return f"lab-{self.bench}"

    @property
    def second_bridge(self) -> str:
        """Bridge of the second interfaces of containers: nothing but they is on it."""
        return f"lab{self.bench}n1"

    @property
    def table(self) -> str:
        return f"gpufarm_lab_{self.bench}"

    @property
    def namespace_prefix(self) -> str:
        return f"lab-{self.bench}-"

    def namespace(self, host: str) -> str:
        return f"{self.namespace_prefix}{host}"

    def link(self, address: str, number: int = 0) -> str:
        """The outer end of an interface of a host, number 0 or 1: a veth or a tap."""
        return f"lab{self.bench}{address.rsplit('.', 1)[1]}{'b' if number else ''}"

    def hardware_address(self, address: str | ipaddress.IPv4Address, number: int = 0) -> str:
        """A locally administered MAC address that stays the same for an IP address of this bench.

        Left to itself a bridge takes the lowest address of its ports, so it would change as hosts come and
        go, and every neighbour that remembers the old one would send into the void until it asks again.
        """
        last = int(str(address).rsplit(".", 1)[1])
        octets = [0x06 if number else 0x02, last, *bytes.fromhex(self.bench)]
        return ":".join(f"{octet:02x}" for octet in octets)

    def subnet(self) -> ipaddress.IPv4Network | None:
        """The network as the kernel has it; None while the bench is down."""
        for link in json.loads(run(["ip", "-j", "-4", "address", "show"])):
            for entry in link["addr_info"]:
                if link["ifname"] == self.bridge:
                    return ipaddress.IPv4Interface(f"{entry['local']}/{entry['prefixlen']}").network
        return None

    def up(self, wanted: ipaddress.IPv4Network | None) -> ipaddress.IPv4Network:
        """Make bridge and NAT unless they are there.

        :param wanted: the network that the bench's hosts have already; None for a new bench.
        :raises LabError: when that one is in use by something else, or all are.
        """
        with locked(LOCK, "network setup", PATIENCE):
            _raise_sysctls()
            subnet = self.subnet()
            if subnet is None:
                used = _used_networks()
                if wanted and any(wanted.overlaps(other) for other in used):
                    raise LabError(
                        f"{wanted}, the network of this bench's hosts, is now used by something else: "
                        "start afresh with lab down"
                    )
                subnet = wanted or free_subnet(used)
                self._make_bridge(subnet)
            self._make_rules(subnet)
        return subnet

    def _make_bridge(self, subnet: ipaddress.IPv4Network) -> None:
        routes = json.loads(run(["ip", "-j", "-4", "route", "show", "default"]))
        mtu = Path(f"/sys/class/net/{routes[0]['dev']}/mtu").read_text().strip() if routes else "1500"
        gateway = subnet.network_address + 1
        commands = [
            f"link add {self.bridge} address {self.hardware_address(gateway)} type bridge",
            f"link set {self.bridge} mtu {mtu} up",
            f"address add {gateway}/{subnet.prefixlen} dev {self.bridge}",
        ]
        run(["ip", "-batch", "-"], stdin="\n".join(commands))

    def _make_rules(self, subnet: ipaddress.IPv4Network) -> None:
        """Replace the bench's table in one transaction (nft(8), "Input file formats")."""
        run(
            ["nft", "-f", "-"],
            stdin=f"""
            table ip {self.table} {{}}
            delete table ip {self.table}
            table ip {self.table} {{
              chain postrouting {{
                type nat hook postrouting priority srcnat;
                ip saddr {subnet} oifname != "{self.bridge}" masquerade;
              }}
              chain forward {{
                type filter hook forward priority filter; policy accept;
                tcp flags syn tcp option maxseg size set rt mtu;
              }}
            }}
            """,
        )

    def attach_namespaces(self, hosts: Sequence[tuple[str, str, int]], subnet: ipaddress.IPv4Network) -> None:
        """Give each host a network namespace with ready, static addresses: the guest configures nothing.

        :param hosts: (name, address, number of interfaces) of each.
        """
        mtu = Path(f"/sys/class/net/{self.bridge}/mtu").read_text().strip()
        outer = []
        if max((nics for _, _, nics in hosts), default=1) > 1 and not _is_link(self.second_bridge):
            outer.append(f"link add {self.second_bridge} mtu {mtu} up type bridge")
        for host, address, nics in hosts:
            outer.append(f"netns add {self.namespace(host)}")
            for number in range(nics):
                link, hardware = self.link(address, number), self.hardware_address(address, number)
                outer += [
                    f"link add {link} mtu {mtu} type veth peer name eth{number} mtu {mtu} "
                    f"address {hardware} netns {self.namespace(host)}",
                    f"link set {link} master {self.second_bridge if number else self.bridge} up",
                ]
        if outer:
            run(["ip", "-batch", "-"], stdin="\n".join(outer))
        for host, address, nics in hosts:
            inner = ["link set lo up"]
            for number, own in enumerate([address, second_address(address)][:nics]):
                inner += [f"link set eth{number} up", f"address add {own}/{subnet.prefixlen} dev eth{number}"]
            inner.append(f"route add default via {subnet.network_address + 1}")
            run(["ip", "-n", self.namespace(host), "-batch", "-"], stdin="\n".join(inner))

    def attach_taps(self, address: str, count: int) -> None:
        """Make the tap interfaces of a virtual machine."""
        mtu = Path(f"/sys/class/net/{self.bridge}/mtu").read_text().strip()
        for link in (self.link(address, number) for number in range(count)):
            run(["ip", "tuntap", "add", link, "mode", "tap"])
            run(["ip", "link", "set", link, "mtu", mtu, "master", self.bridge, "up"])

    def detach(self, host: str, address: str) -> None:
        """Remove a host's network; nothing happens where there is none.

        The link goes first: a namespace is removed asynchronously and would keep it for a while.
        """
        for link in (self.link(address, number - 1) for number in NICS):
            if _is_link(link):
                run(["ip", "link", "delete", link])
        if Path(f"/run/netns/{self.namespace(host)}").exists():
            run(["ip", "netns", "delete", self.namespace(host)])

    def down(self) -> None:
        """Remove all that carries this bench's id."""
        for link in Path("/sys/class/net").glob(f"lab{self.bench}*"):
            with contextlib.suppress(LabError):  # its other end has gone with a namespace in the meantime
                run(["ip", "link", "delete", link.name])
        for namespace in Path("/run/netns").glob(f"{self.namespace_prefix}*"):
            run(["ip", "netns", "delete", namespace.name])
        if _is_link(self.bridge):
            run(["ip", "link", "delete", self.bridge])
        if f"table ip {self.table}\n" in run(["nft", "list", "tables"]):
            run(["nft", "delete", "table", "ip", self.table])


def _is_link(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def _used_networks() -> list[ipaddress.IPv4Network]:
    """Networks of the machine's routes, the default route left out."""
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]))
    networks = [route["dst"] for route in routes if route["dst"] != "default"]
    return [ipaddress.IPv4Network(network, strict=False) for network in networks]


def _raise_sysctls() -> None:
    """Raise, never lower, the limits that many hosts need; they stay raised when the bench is down."""
    for name, value in SYSCTLS.items():
        file = Path("/proc/sys") / name.replace(".", "/")
        if file.exists() and int(file.read_text()) < value:
            file.write_text(str(value))
