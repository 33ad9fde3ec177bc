"""Which ports administrators come in by."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from gpufarm_hub.upkeep import firewall

# `ss --no-header --tcp --all --numeric --processes` on Debian; ssh.socket listens at 2222.
SOCKETS = """\
LISTEN 0      128          0.0.0.0:22        0.0.0.0:*    users:(("sshd",pid=226,fd=3))
LISTEN 0      4096       127.0.0.1:8081      0.0.0.0:*    users:(("jupyterhub",pid=812,fd=9))
LISTEN 0      128        127.0.0.1:6010      0.0.0.0:*    users:(("sshd",pid=300,fd=9))
ESTAB  0      0          10.1.2.3:22        10.1.2.9:51000 users:(("sshd",pid=300,fd=4))
ESTAB  0      0          10.1.2.3:2222      10.1.2.9:51001 users:(("sshd-session",pid=301,fd=4))
ESTAB  0      0          10.1.2.3:41000     10.1.2.8:5432  users:(("sshd",pid=300,fd=11))
LISTEN 0      4096            [::]:2222           [::]:*    users:(("systemd",pid=1,fd=55))
LISTEN 0      511                *:443               *:*    users:(("node",pid=900,fd=21))
TIME-WAIT 0   0          10.1.2.3:443       10.1.2.9:51002
"""


def test_ports_of_servers_and_connections_but_not_what_is_forwarded() -> None:
    assert firewall.ssh_ports(SOCKETS) == [22, 2222]


def test_without_ssh_there_is_none() -> None:
    assert firewall.ssh_ports("") == []
