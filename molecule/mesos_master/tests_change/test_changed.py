"""The master runs from the archive with the new option, and nothing is left of what is off now."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_the_running_master_has_the_new_option(host):
    said = host.check_output(
        "curl --silent"
        " --user operator:$(cat /etc/mesos-master/secrets/principals/operator)"
        ' --json \'{"type": "GET_FLAGS"}\' http://127.0.0.1:5050/master/api/v1'
    )
    flags = {one["name"]: one["value"] for one in json.loads(said)["get_flags"]["flags"]}
    assert flags["allocation_interval"] == "2secs"


def test_it_is_the_one_of_the_archive(host):
    process = host.check_output("systemctl show --property MainPID --value mesos-master")
    assert "/opt/mesos-1.11.1/" in host.check_output("tr '\\0' ' ' < /proc/%s/cmdline", process)


def test_what_other_settings_needed_is_gone_and_what_the_site_gave_is_not(host):
    found = host.check_output("find /etc/mesos-master -type f -printf '%P\\n' | sort").split()
    assert found == [
        "environment",
        "secrets/credentials.json",
        "secrets/principals/agent",
        "secrets/principals/marathon",
        "secrets/principals/operator",
        "secrets/zk",
    ]
    assert "chronos" not in host.file("/etc/mesos-master/secrets/credentials.json").content_string
    for name in ("master1.pem", "master1.key", "ca.pem"):
        assert host.file(f"/srv/tls/{name}").exists
