"""An agent runs from an archive, another in a container."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


def test_it_runs_from_where_it_was_told(host):
    name = host.check_output("hostname -s")
    if name == "agent1":
        process = host.check_output("systemctl show --property MainPID --value mesos-agent")
        assert "/opt/mesos-1.11.0/" in host.check_output("tr '\\0' ' ' < /proc/%s/cmdline", process)
    elif name == "agent2":
        told = json.loads(host.check_output("docker inspect mesos-agent"))[0]
        assert told["State"]["Running"] and told["HostConfig"]["PidMode"] == "host"
        mounts = {one["Destination"]: one["Propagation"] for one in told["Mounts"]}
        assert mounts["/var/lib/mesos/agent"] == "rshared"
    else:
        pytest.skip("it is no agent")
    assert not host.file("/etc/mesos-agent/drained").exists
