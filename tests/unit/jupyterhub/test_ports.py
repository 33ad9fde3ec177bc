"""Linux' tables of sockets and control groups, and the module that reads them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _ports
from ansible_collections.gpufarm.cluster.plugins.modules import listening_ports_info

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 290051 1 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 287301 1 0
   2: 0B024D0A:0016 01024D0A:CB26 01 00000000:00000000 02:0008A5A8 00000000     0        0 288456 2 0
"""


def test_only_listening_sockets_count() -> None:
    assert _ports.parse_listeners(TABLE) == {8081: {290051}, 22: {287301}}
    assert _ports.parse_listeners("") == {}


@pytest.mark.parametrize(
    ("cgroups", "unit"),
    [
        ("0::/system.slice/jupyterhub-proxy.service\n", "jupyterhub-proxy.service"),
        ("12:devices:/a.service\n1:name=systemd:/system.slice/b.service\n0::/\n", "b.service"),
        ("0::/user.slice/user-0.slice/session-3.scope\n", "session-3.scope"),
        ("0::/init.scope/deeper\n", "init.scope"),
        ("0::/\n", ""),
        ("", ""),
    ],
)
def test_unit_of_a_process(cgroups: str, unit: str) -> None:
    assert _ports.parse_unit(cgroups) == unit


def test_finds_the_process_behind_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        inodes = listening_ports_info.sockets()[port]
        (processes,) = listening_ports_info.holders(inodes).values()
        found = [listening_ports_info.describe(port, process) for process in processes]
        assert os.getpid() in [entry["pid"] for entry in found]
    assert port not in listening_ports_info.sockets()
