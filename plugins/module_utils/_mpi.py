# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks over which processes of MPI and NCCL talk. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")  # RFC 1122, 3.2.1.3


def plan(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the networks result in on a machine.

    Args:
        settings: `process_networks`, networks in CIDR notation.
        machine: `name`, and `links`, what `ip -json -4 address show` prints (ip-address(8)).

    Returns:
        `problems`; if there are none, also `interfaces`, the names of those in the networks, and the settings
        of `openmpi` and `nccl`, which are empty without networks.
    """
    wanted = settings["process_networks"]
    networks: list[ipaddress.IPv4Network] = []
    problems = []
    for text in wanted:
        try:
            networks.append(ipaddress.IPv4Network(text))
        except ValueError:
            problems.append(
                f"mpi_process_networks has {text!r}, which is no IPv4 network; "
                "give its first address and the length of its prefix, such as 10.1.0.0/16."
            )
    problems += [
        f"mpi_process_networks has {network}, in which each machine reaches only itself by {LOOPBACK}; "
        "give the networks that join the machines."
        for network in networks
        if network.overlaps(LOOPBACK)
    ]
    problems += [
        f"mpi_process_networks has {one} and {other}, which overlap; keep one of them."
        for one, other in combinations(networks, 2)
        if one.overlaps(other)
    ]
    found = {network: interfaces(network, machine["links"]) for network in networks}
    problems += [
        f"{machine['name']} has no address in {network}, which mpi_process_networks has; "
        "give the machine one, or take the network out."
        for network, names in found.items()
        if not names
    ]
    if problems:
        return {"problems": problems}
    names = list(dict.fromkeys(name for some in found.values() for name in some))
    return {
        "problems": [],
        "interfaces": names,
        # Networks fit all machines of a job, whose interfaces may have other names.
        "openmpi": f"btl_tcp_if_include = {','.join(map(str, networks))}" if networks else "",
        # Without the sign, a name means all interfaces whose names begin with it (NCCL's manual).
        "nccl": f"NCCL_SOCKET_IFNAME=={','.join(names)}" if names else "",
    }


def interfaces(network: ipaddress.IPv4Network, links: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the interfaces that have an address in a network."""
    return [
        link["ifname"]
        for link in links
        if any(ipaddress.IPv4Address(entry["local"]) in network for entry in link["addr_info"])
    ]
