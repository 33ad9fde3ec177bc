"""Nothing of the role is left but the work folder, and the login to what stays in ZooKeeper."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    assert not host.file("/etc/mesos-master").exists
    assert host.run("systemctl cat mesos-master").rc != 0
    assert not host.socket("tcp://5050").is_listening
    assert host.file("/var/lib/mesos/master").is_directory
    login = host.file("/var/lib/mesos-master/zookeeper")
    assert (login.user, login.mode) == ("root", 0o600) and login.size == 43
