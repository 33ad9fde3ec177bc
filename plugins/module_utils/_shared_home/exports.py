# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Homes that one machine of a cluster exports to the others by NFS. No I/O.

Sources: exports(5); nfsd(7) for ``/proc/fs/nfsd/clients``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

MARK = "# Written by gpufarm.cluster.shared_home; changes are lost."
NAME = "gpufarm-homes.exports"
_MACHINE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def on_this_machine(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of the kinds that a machine has: homes of a cluster are on a disk here, or NFS.

    Quotas are those of the server's disk, options those of the mounts of its clients.

    Args:
        settings: the role's variables without ``shared_home_``, and ``serves``, ``server_address`` and
            ``client_addresses``.
    """
    if settings["kind"] != "cluster":
        return {**settings, "exports": False}
    if settings["serves"]:
        return {**settings, "kind": "local", "options": [], "exports": True}
    host = settings["server_address"]
    source = f"{f'[{host}]' if ':' in host else host}:{settings['path']}"
    no_quotas = {"quota": "", "quota_files": 0, "user_quotas": {}}
    return {**settings, "kind": "nfs", "source": source, "exports": False, **no_quotas}


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the machines of a cluster with homes, one sentence each.

    Args:
        settings: as for `on_this_machine`.
    """
    if settings["kind"] != "cluster":
        return
    if not settings["server_address"]:
        yield (
            "shared_home_kind is cluster, and shared_home_server is empty; name the machine whose disk has"
            " the homes."
        )
    if settings["serves"] and not settings["client_addresses"]:
        yield (
            "shared_home_clients is empty, so no machine could mount the homes; name them, or set"
            " shared_home_kind to local."
        )
    for client in settings["client_addresses"]:
        if not (_is_network(str(client)) or _MACHINE.fullmatch(str(client))):
            yield f"shared_home_clients names '{client}', which is no machine, address or network."


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def text(settings: Mapping[str, Any]) -> str:
    """Return the file that exports the homes.

    Where the homes have no file system of their own, the server checks that what a client asks for is among
    them: a client whose root makes up file handles would else reach all of that file system.

    Args:
        settings: of the server, as `on_this_machine` returns them.
    """
    root = "no_root_squash" if settings["create"] else "root_squash"
    subtree = "no_subtree_check" if settings["source"] else "subtree_check"
    options = f"(rw,sync,{root},{subtree})"
    clients = "".join(f" {client}{options}" for client in settings["client_addresses"])
    return f"{MARK}\n{settings['path']}{clients}\n"


def clients_of(file: str) -> list[str]:
    """Return the machines to which a file of `text` exports.

    Args:
        file: its text.
    """
    lines = [line for line in file.splitlines() if line and not line.startswith("#")]
    return [word.partition("(")[0] for line in lines for word in line.split()[1:]]


def exports_something(files: Iterable[str]) -> bool:
    """Return whether any of the files exports a folder.

    Args:
        files: texts of ``/etc/exports`` and files of ``/etc/exports.d``.
    """
    lines = (line.strip() for file in files for line in file.splitlines())
    return any(line and not line.startswith("#") for line in lines)


def connected(
    infos: Iterable[str], clients: Iterable[str], look_up: Callable[[str], Iterable[str]]
) -> list[str]:
    """Return the addresses of clients that have a file system of the server mounted.

    Args:
        infos: texts of ``/proc/fs/nfsd/clients/*/info``.
        clients: machines and networks that are looked for. Any client may be the machine of an unknown name.
        look_up: returns the addresses of a name.
    """
    there = {found for info in infos if (found := _confirmed(info))}
    wanted = [network for client in clients for network in _networks(client, look_up)] if there else []
    return sorted(str(one) for one in there if any(one in network for network in wanted))


def _confirmed(info: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    fields = dict(line.partition(": ")[::2] for line in info.splitlines())
    # A client that has been silent for longer than its lease is kept as "courtesy" for a day.
    if fields.get("status", "confirmed") != "confirmed":
        return None
    try:
        return ipaddress.ip_address(fields.get("address", "").strip('"').rpartition(":")[0].strip("[]"))
    except ValueError:
        return None


def _networks(
    client: str, look_up: Callable[[str], Iterable[str]]
) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    if _is_network(client):
        return [ipaddress.ip_network(client)]
    addresses = (text.partition("%")[0] for text in look_up(client))
    found = [ipaddress.ip_network(text) for text in addresses if _is_network(text)]
    return found or [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
