"""The hub, its notebooks and their network are gone; Docker and homes are there."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_of_the_hub_is_left(host):
    assert host.check_output("docker ps --all --quiet") == ""
    assert "jupyterhub" not in host.check_output("docker network ls --format '{{.Name}}'")
    assert "jupyterhub" not in host.check_output("nft list tables")
    for name in ("jupyterhub-network.service", "jupyterhub-gate.service", "jupyterhub-gate.socket"):
        assert not host.file(f"/etc/systemd/system/{name}").exists


def test_docker_and_homes_are_left(host):
    assert host.service("docker").is_running
    assert host.file("/etc/docker/daemon.json").exists
    assert host.file("/home/alice/kept").exists
