"""Nothing of the role is left but the data."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left_but_the_data(host):
    assert host.run("systemctl cat zookeeper").rc != 0
    assert not host.file("/etc/zookeeper").exists
    assert not host.package("libzookeeper-java").is_installed
    assert not host.socket("tcp://2181").is_listening
    assert host.file("/var/lib/zookeeper/version-2").is_directory
