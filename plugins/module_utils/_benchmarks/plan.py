# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role benchmarks. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._cidr import address, interfaces, networks


def plan(
    settings: Mapping[str, Any], name: str, links: Mapping[str, Iterable[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return what the settings result in on a machine.

    Args:
        settings: `peers`, names of machines; `networks` in CIDR notation; `folders`, `memory_mib`,
            `file_mib` and `port`.
        name: of the machine in the inventory.
        links: what `ip -json -4 address show` prints on the machine and on the next one of the list, if that
            can be reached (ip-address(8)).

    Returns:
        `problems`; if there are none, also `links`, each with `peer`, the next machine, `network`, the
        addresses `bind` of the machine and `address` of the peer, and `interfaces` of the machine in the
        network; and `unmeasured`, sentences about links
        that cannot be measured now.
    """
    found, problems = networks("benchmarks_networks", settings["networks"])
    problems += [
        f"benchmarks_folders has {folder!r}, which is no absolute path; give one such as /scratch."
        for folder in settings["folders"]
        if not folder.startswith("/") or ".." in folder.split("/")
    ]
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
        return {"problems": problems, "links": [], "unmeasured": []}
    peer = peers[(peers.index(name) + 1) % len(peers)]
    if peer not in links:
        return {
            "problems": [],
            "links": [],
            "unmeasured": [
                f"{peer} cannot be reached, so the links to it are not measured; see to it, or leave it out."
            ],
        }
    problems = [
        f"{machine} has no address in {network}, which benchmarks_networks has; "
        "give the machine one, or take the network out."
        for network in found
        for machine in (name, peer)
        if not address(network, links[machine])
    ]
    measured = [
        {
            "peer": peer,
            "network": str(network),
            "bind": address(network, links[name]),
            "address": address(network, links[peer]),
            "interfaces": interfaces(network, links[name]),
        }
        for network in found
    ]
    return {"problems": problems, "links": measured, "unmeasured": []}
