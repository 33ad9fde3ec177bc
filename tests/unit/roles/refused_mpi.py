"""Refusals of the role mpi."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from refused import Refused

REFUSED = {
    "mpi": [
        Refused("mpi_process_network is no variable of the role", {"mpi_process_network": ["192.0.2.0/24"]}),
        Refused("'eth0', which is no IPv4 network", {"mpi_process_networks": ["eth0"]}),
        Refused(
            "192.0.2.0/24 and 192.0.2.0/25, which overlap",
            {"mpi_process_networks": ["192.0.2.0/24", "192.0.2.0/25"]},
        ),
        Refused("host1 has no address in 203.0.113.0/24", {"mpi_process_networks": ["203.0.113.0/24"]}),
    ],
}
