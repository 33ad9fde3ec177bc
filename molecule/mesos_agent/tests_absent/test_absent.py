"""Nothing of the role is left on the agents but their work folders."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


def test_nothing_is_left(host):
    if not host.check_output("hostname -s").startswith("agent"):
        pytest.skip("it is no agent")
    assert not host.file("/etc/mesos-agent").exists
    assert host.run("systemctl cat mesos-agent").rc != 0
    assert not host.socket("tcp://5051").is_listening
    assert host.file("/var/lib/mesos/agent").is_directory


def test_it_could_come_back_as_another_agent(host):
    """With its old identity its masters would know it as drained, and give it nothing."""
    if not host.check_output("hostname -s").startswith("agent"):
        pytest.skip("it is no agent")
    assert host.file("/var/lib/mesos/agent/meta/slaves").is_directory
    assert not host.file("/var/lib/mesos/agent/meta/slaves/latest").exists
