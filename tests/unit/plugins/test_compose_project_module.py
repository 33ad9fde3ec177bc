"""The module compose_project on a Docker that is told what to answer."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.modules import compose_project

LABELS = {"com.docker.compose.service": "web"}


class Docker:
    """A module whose commands are answered by a Docker with a container and its network."""

    def __init__(self, folder: Path, check_mode: bool) -> None:
        self.check_mode = check_mode
        self.params = {
            "name": "tracking",
            "file": str(folder / "compose.yaml"),
            "state": "absent",
            "secret_env": {},
            "timeout": 9,
        }
        self.changes: list[str] = []
        self.tmpdir = str(folder)
        self.environment: dict[str, str] = {}

    def add_cleanup_file(self, path: str) -> None:
        """Leave it to pytest."""

    def run_command(self, command: list[str], **how: Any) -> tuple[int, str, str]:
        what = command[1:3]
        if "--env-file" in command:
            self.environment = {**os.environ, **how["environ_update"]}
            return 0, "", ""
        if "--short" in command:
            return 0, "2.26.1", ""
        if what == ["container", "ls"] or what == ["network", "ls"]:
            return 0, what[0], ""
        if what == ["inspect", "container"]:
            labels = {**LABELS, "com.docker.compose.project.config_files": self.params["file"]}
            own = {"Id": "1", "Config": {"Labels": labels, "Image": "x"}, "State": {"Status": "running"}}
            return 0, json.dumps([{**own, "Name": "/tracking-web-1"}]), ""
        if what == ["inspect", "network"]:
            joined = {"1": {"Name": "tracking-web-1"}, "2": {"Name": "proxy"}}
            return 0, json.dumps([{"Id": "n", "Name": "tracking_default", "Containers": joined}]), ""
        if command[1] != "version":
            self.changes.append(command[1])
        return 0, "", ""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose_project.shutil, "which", lambda name, **_where: f"/usr/bin/{name}")


def test_a_network_that_others_use_stops_a_removal_before_it_begins(tmp_path: Path) -> None:
    docker = Docker(tmp_path, check_mode=False)
    with pytest.raises(
        compose_project.Problem, match="tracking_default of the project tracking is used by proxy"
    ):
        compose_project.apply(docker)  # type: ignore[arg-type]
    assert docker.changes == []


def test_a_network_that_others_use_stops_no_project_that_stays(tmp_path: Path) -> None:
    """The role looks for containers of others in check mode, also where a proxy has joined the network."""
    docker = Docker(tmp_path, check_mode=True)
    assert compose_project.apply(docker)["changed"]  # type: ignore[arg-type]
    assert docker.changes == []


@pytest.mark.parametrize("name", ["USER", "HOME", "LC_ALL", "PATH"])
def test_no_variable_of_the_run_goes_before_a_value_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Compose takes what its environment has before what the file with values has."""
    monkeypatch.setenv(name, "root")
    docker = Docker(tmp_path, check_mode=False)
    docker.params["secret_env"] = {name: "ada"}
    compose_project.Project(docker).compose("config")  # type: ignore[arg-type]
    assert name not in docker.environment and len(docker.environment) > 1
