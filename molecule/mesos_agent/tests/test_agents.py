"""Agents have what was meant, and their secrets are hidden."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def agents_only(host):
    if not host.check_output("hostname -s").startswith("agent"):
        pytest.skip("it is no agent")


def test_it_runs_with_the_options_that_were_meant(host):
    secret = json.loads(host.file("/etc/mesos-agent/secrets/http_credentials.json").content_string)
    password = secret["credentials"][0]["secret"]
    said = host.check_output(
        'curl --silent --user operator:%s --json \'{"type": "GET_FLAGS"}\' http://127.0.0.1:5051/api/v1',
        password,
    )
    flags = {one["name"]: one["value"] for one in json.loads(said)["get_flags"]["flags"]}
    assert flags["resources"] == "cpus:4;disk:10000;mem:8192;ports:[31000-32000];gpus:0"
    assert {"cgroups/cpu", "cgroups/mem", "filesystem/linux"} <= set(flags["isolation"].split(","))
    assert flags["recover"] == "reconnect" and flags["reconfiguration_policy"] == "additive"
    assert flags["attributes"] == "gpu_model:none"


def test_nobody_gets_in_without_a_password(host):
    status = "curl --silent --output /dev/null --write-out %{http_code}"
    assert host.check_output(f"{status} http://127.0.0.1:5051/state") == "401"


def test_no_secret_is_to_be_seen(host):
    folder = "/etc/mesos-agent/secrets"
    assert host.file(folder).mode == 0o700
    secret = json.loads(host.file(f"{folder}/credential.json").content_string)
    assert host.file(f"{folder}/credential.json").mode == 0o600 and secret["principal"] == "agent"
    seen = host.check_output("cat /proc/*/cmdline /etc/mesos-agent/environment; journalctl -b")
    assert secret["secret"] not in seen


def test_tasks_would_outlive_a_restart(host):
    assert host.check_output("systemctl show --property KillMode --value mesos-agent") == "process"
