"""Users who run cells in kernels, by a client as JupyterLab has one."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

CELL = (Path(__file__).parent / "files" / "cell.py").read_text()
Run = Callable[..., CommandResult]


@pytest.fixture
def cell(host: Host) -> Run:
    """Run code in a new kernel of an environment, as a user with a notebook does."""

    def run(user: str, code: str, environment: str = "scientific") -> CommandResult:
        index = json.loads(host.file("/etc/gpufarm/environments.json").content_string)
        paths = {one["name"]: one["path"] for one in index["environments"]}
        return host.run(
            "cd /home/%s && runuser --user %s -- env --ignore-environment HOME=/home/%s PATH=/usr/bin:/bin "
            "JUPYTER_RUNTIME_DIR=/tmp/jupyter-%s JUPYTER_PATH=%s %s/../bin/python -c %s %s %s",
            *(user, user, user, user, paths[environment], paths["scientific"], CELL, environment, code),
        )

    return run


@pytest.fixture
def notice(host: Host) -> Callable[..., str]:
    """Return what JupyterLab would show a user about an environment."""

    def read(user: str, environment: str = "scientific") -> str:
        return host.run("cat /tmp/jupyter-%s/gpufarm-environment-%s-*.txt", user, environment).stdout

    return read
