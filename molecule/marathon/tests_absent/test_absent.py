"""Nothing of Marathon is left on the machine; its state in ZooKeeper is."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    for path in (
        "/etc/marathon",
        "/opt/marathon",
        "/etc/systemd/system/marathon.service",
        "/run/gpufarm-marathon",
    ):
        assert not host.file(path).exists, path
    assert not host.user("marathon").exists
    assert not host.socket("tcp://0.0.0.0:8443").is_listening


def test_the_state_stays(host):
    script = (
        "from kazoo.client import KazooClient; c = KazooClient('m1:2181', auth_data=[('digest',"
        " 'marathon:s3cret-of-state')]); c.start(); print(len(c.get('/marathon/state')[0]) > 100)"
    )
    assert host.check_output(f'python3 -c "{script}"') == "True"
