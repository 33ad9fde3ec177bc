"""All servers have the new configuration, and clients have lost no data meanwhile."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


def test_servers_run_with_the_new_configuration(host):
    assert "maxClientCnxns=50\n" in host.file("/etc/zookeeper/zoo.cfg").content_string
    late = host.check_output("find /etc/zookeeper -newercm /run/gpufarm-zookeeper/started")
    assert late == ""


def test_the_writer_has_lost_neither_its_session_nor_a_number(host):
    if host.check_output("hostname -s") != "zk1":
        pytest.skip("the writer is on zk1")
    host.check_output("systemctl stop writer")
    told = json.loads(host.check_output("journalctl -u writer -o cat | grep written"))
    assert told["lost"] == 0
    assert told["written"] > 20
    # a write may have been done although its answer was lost
    assert told["read"] >= told["written"]
