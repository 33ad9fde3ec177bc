# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks over which processes of MPI and NCCL talk. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._cidr import interfaces, networks
from ._fabric.plan import rails_of


def plan(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the networks result in on a machine.

    Args:
        settings: `process_networks`, networks in CIDR notation; if there are none, those of the rails for
            processes.
        machine: `name`, `links`, what `ip -json -4 address show` prints (ip-address(8)), and `rails`, the
            text of the file that the role fabric leaves; empty without it.

    Returns:
        `problems`; if there are none, also `networks` in CIDR notation, `interfaces`, the names of those in
        them, and the settings of `openmpi` and `nccl`, which are empty without networks and rails.
    """
    rails = rails_of(machine["rails"])
    of_rails = dict.fromkeys(network for rail in rails for network in rail["networks"])
    declared = "mpi_process_networks" if settings["process_networks"] else "fabric_rails"
    wanted, problems = networks(declared, settings["process_networks"] or of_rails)
    found = {network: interfaces(network, machine["links"]) for network in wanted}
    problems += [
        f"{machine['name']} has no address in {network}, which {declared} has; "
        "give the machine one, or take the network out."
        for network, names in found.items()
        if not names
    ]
    if problems:
        return {"problems": problems}
    names = list(dict.fromkeys(name for some in found.values() for name in some))
    openmpi, nccl = [], []
    if wanted:
        # Networks fit all machines of a job, whose interfaces may have other names.
        openmpi.append(f"btl_tcp_if_include = {','.join(map(str, wanted))}")
        # Without the second sign, a name means all interfaces whose names begin with it (NCCL's manual).
        nccl.append(f"NCCL_SOCKET_IFNAME=={','.join(names)}")
    if rails:
        # Debian's file turns UCX off. Without `any`, Open MPI leaves out soft RoCE and adapters of others.
        openmpi += ["pml = ucx", "osc = ucx", "opal_common_ucx_tls = any", "opal_common_ucx_devices = any"]
        nccl.append(f"NCCL_IB_HCA=={','.join(rail['device'] for rail in rails)}")
    return {
        "problems": [],
        "networks": list(map(str, wanted)),
        "interfaces": names,
        "openmpi": "\n".join(openmpi),
        "nccl": "\n".join(nccl),
    }
