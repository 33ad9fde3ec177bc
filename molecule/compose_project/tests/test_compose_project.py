"""The containers run as their file says, and only they know the secret."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

SECRET = "it's $word {{ 7 }}"


def states(host, project):
    mark = f"label=com.docker.compose.project={project}"
    names = host.check_output(f"docker ps --all --filter {mark} --format '{{{{.Names}}}} {{{{.State}}}}'")
    return dict(line.split() for line in names.splitlines())


def test_the_containers_run(host):
    found = {name.replace("_", "-"): state for name, state in states(host, "tracking").items()}
    assert found == {"tracking-first-1": "exited", "tracking-web-1": "running", "tracking-store-1": "running"}
    assert list(states(host, "beside").values()) == ["running"]


def test_the_server_is_reached_and_has_its_secret(host):
    answer = host.check_output("busybox wget -q -O - http://127.0.0.1:8080/env")
    assert f"PASSWORD={SECRET}" in answer.splitlines()


def test_the_secret_is_in_no_file_of_ours(host):
    file = host.file("/etc/gpufarm/compose/tracking/compose.yaml")
    assert (file.mode, file.user) == (0o600, "root")
    assert host.run("grep -rlF -- '$word' /etc/gpufarm /var/lib/gpufarm /var/log").stdout == ""


@pytest.mark.parametrize("project", ["theirs"])
def test_the_project_of_somebody_else_is_as_it_was(host, project):
    assert states(host, project) == {"theirs": "running"}


def test_they_come_back_when_docker_does(host):
    host.check_output("systemctl restart docker")
    ids = host.check_output("docker ps --quiet --filter label=com.docker.compose.project=beside")
    (found,) = json.loads(host.check_output(f"docker inspect {ids}"))
    assert found["State"]["Running"]
