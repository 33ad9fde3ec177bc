"""The next version runs, and the masters drained one agent after the other for it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


def test_the_next_version_is_there(host):
    if not host.check_output("hostname -s").startswith("agent"):
        pytest.skip("it is no agent")
    assert host.package("aventer-mesos").version == "1.11.1"
    late = host.check_output(
        "find /usr/sbin/mesos-agent /etc/mesos-agent -type f -newercm /run/gpufarm-mesos-agent/started"
    )
    assert late == ""


def test_agents_were_drained_one_after_the_other_and_then_replaced(host):
    if host.check_output("hostname -s") != "master1":
        pytest.skip("the master knows")
    journal = "journalctl --boot --output short-unix --unit mesos-master | grep _AGENT"
    said = [line.split() for line in host.check_output(journal).splitlines()]
    upgrades = [
        json.loads(host.file(f"/srv/upgrade-{name}.json").content_string) for name in ("agent1", "agent2")
    ]
    told = [(words[-2], words[-1]) for words in said]
    assert told == [(kind, one["agent"]) for one in upgrades for kind in ("DRAIN_AGENT", "REACTIVATE_AGENT")]
    times = iter(float(words[0]) for words in said)
    for one in upgrades:
        assert next(times) < one["replaced"] < next(times), one


def test_what_the_agent_had_started_has_outlived_its_restart(host):
    if not host.check_output("hostname -s").startswith("agent"):
        pytest.skip("it is no agent")
    task = host.check_output("pgrep --full --exact 'sleep 123456'")
    assert "/system.slice/mesos-agent.service" in host.file(f"/proc/{task}/cgroup").content_string
    assert host.check_output("find /run/gpufarm-mesos-agent/started -newer /srv/task-started")


def test_what_other_settings_needed_is_gone(host):
    if not host.check_output("hostname -s").startswith("agent"):
        pytest.skip("it is no agent")
    found = host.check_output("find /etc/mesos-agent -type f -printf '%P\\n' | sort").split()
    assert found == ["environment", "secrets/credential.json", "secrets/http_credentials.json"]


def test_nothing_says_that_an_agent_is_to_be_taken_back(host):
    assert not host.file("/etc/mesos-agent/drained").exists
