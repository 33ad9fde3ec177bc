# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role benchmarks. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._cidr import address, interfaces, networks
from . import perftest

ACTIVE = "ACTIVE"


def plan(
    settings: Mapping[str, Any],
    name: str,
    links: Mapping[str, Iterable[Mapping[str, Any]]],
    adapters: Mapping[str, Iterable[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return what the settings result in on a machine.

    Args:
        settings: `peers`, names of machines; `networks` in CIDR notation; `folders`, `nccl_tests`,
            `memory_mib`, `file_mib` and `port`.
        name: of the machine in the inventory.
        links: what `ip -json -4 address show` prints on the machine and on the next one of the list, if that
            can be reached (ip-address(8)).
        adapters: of RDMA, of the same machines, each with `name` and `ports` (module fabric_info).

    Returns:
        `problems`; `links`, each with `kind`, ``link`` or ``rdma``, `serve`, the words by which the next
        machine serves, and `to`: `peer`, that machine, `network`, the addresses `bind` of the machine and
        `address` of the peer, `port`, and of RDMA `device`, the machine's adapter; `mpi`, links like `to`,
        with `interfaces` of the machine in the network in place of a port; and `unmeasured`, sentences about
        links that cannot be measured now.
    """
    nothing: dict[str, Any] = {"problems": [], "links": [], "mpi": [], "unmeasured": []}
    found, problems = networks("benchmarks_networks", settings["networks"])
    problems += [
        f"benchmarks_folders has {folder!r}, which is no absolute path; give one such as /scratch."
        for folder in settings["folders"]
        if not _absolute(folder)
    ]
    if settings["nccl_tests"] and not _absolute(settings["nccl_tests"]):
        problems.append(
            f"benchmarks_nccl_tests is {settings['nccl_tests']!r}, which is no absolute path; "
            "give one such as /opt/nccl-tests/build."
        )
    problems += [
        f"benchmarks_{key} is {settings[key]}, which is too small; give {least} or more."
        for key, least in (("memory_mib", 1), ("file_mib", 1), ("port", 1))
        if settings[key] < least
    ]
    if settings["port"] > 65535:
        problems.append(f"benchmarks_port is {settings['port']}, which is no port; give one up to 65535.")
    peers: Sequence[str] = settings["peers"]
    if bool(peers) is not bool(found) and not problems:
        given, missing = ("peers", "networks") if peers else ("networks", "peers")
        problems.append(
            f"benchmarks_{given} is set and benchmarks_{missing} is not; "
            "links are measured between the peers on the networks, so set both or none."
        )
    if len(set(peers)) != len(peers) or len(peers) == 1:
        problems.append("benchmarks_peers needs at least two machines, each of them once.")
    if name not in peers or problems:
        return {**nothing, "problems": problems}
    peer = peers[(peers.index(name) + 1) % len(peers)]
    if peer not in links:
        unreached = (
            f"{peer} cannot be reached, so the links to it are not measured; see to it, or leave it out."
        )
        return {**nothing, "unmeasured": [unreached]}
    problems = [
        f"{machine} has no address in {network}, which benchmarks_networks has; "
        "give the machine one, or take the network out."
        for network in found
        for machine in (name, peer)
        if not address(network, links[machine])
    ]
    if problems:
        return {**nothing, "problems": problems}
    found_links, found_mpi = [], []
    for network in found:
        ends = {
            "peer": peer,
            "network": str(network),
            "bind": address(network, links[name]),
            "address": address(network, links[peer]),
        }
        served = {**ends, "port": settings["port"]}
        iperf = ["iperf3", "--server", f"--bind={ends['address']}", f"--port={settings['port']}"]
        found_links.append({"kind": "link", "serve": iperf, "to": served})
        own, others = (
            _adapter(interfaces(network, links[machine]), adapters.get(machine, ()))
            for machine in (name, peer)
        )
        if own and others:
            serve = perftest.server(settings["port"])
            found_links.append({"kind": "rdma", "serve": serve, "to": {**served, "device": own}})
        found_mpi.append({**ends, "interfaces": interfaces(network, links[name])})
    return {**nothing, "links": found_links, "mpi": found_mpi}


def _absolute(path: str) -> bool:
    return path.startswith("/") and ".." not in path.split("/")


def _adapter(names: Iterable[str], adapters: Iterable[Mapping[str, Any]]) -> str:
    """Return the RDMA adapter with a link that one of the interfaces belongs to; empty if there is none."""
    for one in adapters:
        for port in one["ports"]:
            if port["interface"] in names and port["state"] == ACTIVE:
                return str(one["name"])
    return ""
