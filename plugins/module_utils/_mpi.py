# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks over which processes of MPI and NCCL talk. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._cidr import interfaces, networks


def plan(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the networks result in on a machine.

    Args:
        settings: `process_networks`, networks in CIDR notation.
        machine: `name`, and `links`, what `ip -json -4 address show` prints (ip-address(8)).

    Returns:
        `problems`; if there are none, also `interfaces`, the names of those in the networks, and the settings
        of `openmpi` and `nccl`, which are empty without networks.
    """
    wanted, problems = networks("mpi_process_networks", settings["process_networks"])
    found = {network: interfaces(network, machine["links"]) for network in wanted}
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
        "openmpi": f"btl_tcp_if_include = {','.join(map(str, wanted))}" if wanted else "",
        # Without the sign, a name means all interfaces whose names begin with it (NCCL's manual).
        "nccl": f"NCCL_SOCKET_IFNAME=={','.join(names)}" if names else "",
    }
