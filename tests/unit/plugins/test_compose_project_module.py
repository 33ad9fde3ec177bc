"""The module compose_project on a Docker that is told what to answer."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
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

    def run_command(self, command: list[str], **_how: Any) -> tuple[int, str, str]:
        what = command[1:3]
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
