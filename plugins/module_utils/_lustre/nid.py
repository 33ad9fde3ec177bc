# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of Lustre: networks, network identifiers (NIDs), and the device that a client mounts. No I/O.

Sources: mount.lustre(8); lctl(8); Lustre Operations Manual, "Understanding Lustre Networking (LNet)".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# lnet/include/uapi/linux/lnet/nidstr.h; the number of a network has 16 bits.
NETWORK = re.compile(r"(tcp|o2ib|efa|kfi|gni)([0-9]{0,5})")
MOST_NETWORKS = 65535
LONGEST_NAME = 8  # mkfs.lustre(8), --fsname
# RFC 1123, 2.1. A name without a letter is an address.
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST = re.compile(rf"(?=[^A-Za-z]*[A-Za-z]){_LABEL}(\.{_LABEL})*")
DEFAULT_NETWORK = "tcp"  # mount.lustre(8), "mgsnid"


class AddressError(ValueError):
    """Something is no address; the text is a part of a sentence that says why."""


class Nid(NamedTuple):
    """One interface of a machine: its address in a network."""

    address: str
    network: str

    def __str__(self) -> str:
        return f"{self.address}@{self.network}"

    @property
    def is_name(self) -> bool:
        """Whether the address is the name of a host, which has to be looked up."""
        return bool(HOST.fullmatch(self.address))


class Device(NamedTuple):
    """Source of a client's mount: NIDs of servers that replace one another, file system, folder."""

    servers: tuple[tuple[Nid, ...], ...]
    file_system: str
    folder: str

    def __str__(self) -> str:
        servers = ":".join(",".join(str(nid) for nid in server) for server in self.servers)
        return f"{servers}:/{self.file_system}{'/' + self.folder if self.folder else ''}"

    @property
    def nids(self) -> list[Nid]:
        """All NIDs, in their order."""
        return [nid for server in self.servers for nid in server]


def parse_network(text: str) -> str:
    """Return a network as LNet names it: ``tcp0`` is ``tcp``.

    Raises:
        AddressError: there is no such network.
    """
    found = NETWORK.fullmatch(text)
    if not found or (found[2] and int(found[2]) > MOST_NETWORKS):
        raise AddressError(f"'{text}' is no network; write one like tcp, tcp1 or o2ib")
    number = int(found[2] or 0)
    return f"{found[1]}{number or ''}"


def parse_nid(text: str, addresses: Mapping[str, str] | None = None) -> Nid:
    """Return a NID.

    Args:
        text: ``ADDRESS@NETWORK``; an IPv4 address, or a number in ``gni`` and ``kfi``.
        addresses: addresses by name. Where it is given, the text may have the name of a host for an address,
            which stays if its address is not among them, and may leave out the network.

    Raises:
        AddressError: it is none.
    """
    address, at, network = text.partition("@")
    if not at and addresses is not None:
        network = DEFAULT_NETWORK
    elif not at:
        raise AddressError(f"'{text}' names no network; write ADDRESS@NETWORK, such as 10.0.0.1@tcp")
    network = parse_network(network)
    # nidstrings.c: gni and kfi number their interfaces
    if network.startswith(("gni", "kfi")) and re.fullmatch("[0-9]+", address):
        return Nid(address, network)
    if addresses is not None and HOST.fullmatch(address):
        return Nid(addresses.get(address, address), network)
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", address):
        raise AddressError(
            f"'{text}' has no IPv4 address before the @, which is what Lustre keeps in place of names"
            if addresses is None
            else f"'{text}' has neither an IPv4 address nor the name of a host before the network"
        )
    parts = [int(part) for part in address.split(".")]
    if max(parts) > 255:
        raise AddressError(f"'{text}' has no valid IPv4 address")
    return Nid(".".join(str(part) for part in parts), network)


def parse_servers(text: str, addresses: Mapping[str, str] | None = None) -> tuple[tuple[Nid, ...], ...]:
    """Return the NIDs of machines that take one another's place.

    Args:
        text: ``NID[,NID][:NID[,NID]]``, with commas between NIDs of a machine and colons between machines.
        addresses: as for parse_nid().

    Raises:
        AddressError: one of them is no NID.
    """
    return tuple(tuple(parse_nid(nid, addresses) for nid in server.split(",")) for server in text.split(":"))


def is_file_system(name: str) -> bool:
    """Whether something can be the name of a file system."""
    return bool(re.fullmatch(f"[-_A-Za-z0-9]{{1,{LONGEST_NAME}}}", name))


def parse_device(text: str, addresses: Mapping[str, str] | None = None) -> Device:
    """Return what a client mounts.

    Args:
        text: ``NID[,NID][:NID[,NID]]:/NAME[/FOLDER]``.
        addresses: as for parse_nid().

    Raises:
        AddressError: it cannot be mounted.
    """
    servers, separator, rest = text.partition(":/")
    if not separator:
        raise AddressError(f"'{text}' names no file system; write SERVER@NETWORK:/NAME")
    name, _slash, folder = rest.partition("/")
    if not is_file_system(name):
        raise AddressError(
            f"'{text}' names the file system '{name}'; a name has 1 to {LONGEST_NAME} letters, digits, - and"
            " _"
        )
    folder = folder.strip("/")
    if folder and not re.fullmatch(r"[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*", folder):
        raise AddressError(f"'{text}' names the folder '{folder}', which has other than plain characters")
    if folder and set(folder.split("/")) & {".", ".."}:
        raise AddressError(f"'{text}' names the folder '{folder}', which leaves the file system")
    return Device(parse_servers(servers, addresses), name, folder)


def is_device(text: str) -> bool:
    """Whether a source of the mount table is Lustre's: no other type of file system has one of this form."""
    try:
        parse_device(text)
    except AddressError:
        return False
    return True
