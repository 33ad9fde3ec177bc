"""Files of the role on the machine, and files that it did not touch."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "box12":
        pytest.skip("another machine")


@pytest.mark.parametrize("name", ["docker", "jupyterhub-network", "jupyterhub-gate", "jupyterhub"])
def test_services_run_now_and_after_a_reboot(host, name):
    assert host.service(name).is_running
    assert host.service(name).is_enabled


def test_dockers_configuration_is_the_sites(host):
    assert list(json.loads(host.file("/etc/docker/daemon.json").content_string)) == ["runtimes"]


def test_the_hub_is_not_reached_from_outside(host):
    listening = [entry for entry in host.socket.get_listening_sockets() if entry.endswith((":8081", ":8082"))]
    assert sorted(listening) == ["tcp://127.0.0.1:8081", "tcp://172.30.248.1:8082"]
