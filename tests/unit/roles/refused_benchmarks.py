"""Refusals of the role benchmarks."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from refused import Refused

REFUSED = {
    "benchmarks": [
        Refused("benchmarks_peer is no variable of the role", {"benchmarks_peer": "host2"}),
        Refused("'eth0', which is no IPv4 network", {"benchmarks_networks": ["eth0"]}),
        Refused("host1 has no address in 203.0.113.0/24", {"benchmarks_networks": ["203.0.113.0/24"]}),
        Refused("benchmarks_peers is set and benchmarks_networks is not", {"benchmarks_networks": []}),
        Refused("benchmarks_networks is set and benchmarks_peers is not", {"benchmarks_peers": []}),
        Refused("needs at least two machines", {"benchmarks_peers": ["host1"]}),
        Refused("needs at least two machines", {"benchmarks_peers": ["host1", "host1"]}),
        Refused("'scratch', which is no absolute path", {"benchmarks_folders": ["scratch"]}),
        Refused("'/srv/../etc', which is no absolute path", {"benchmarks_folders": ["/srv/../etc"]}),
        Refused("'nccl-tests', which is no absolute path", {"benchmarks_nccl_tests": "nccl-tests"}),
        Refused("host1 has no /opt/nccl/all_reduce_perf", {"benchmarks_nccl_tests": "/opt/nccl"}),
        Refused("benchmarks_memory_mib is 0, which is too small", {"benchmarks_memory_mib": 0}),
        Refused("benchmarks_port is 65536, which is no port", {"benchmarks_port": 65536}),
    ],
}
