"""The address that Ansible is connected to is found above sudo."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COLLECTIONS = str(Path(__file__).resolve().parents[3] / ".work" / "collections")
FIND = """
import sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader(sys.argv[1:])
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io.read import connection
print(connection())
"""


@pytest.mark.parametrize("told", ["192.0.2.1 41468 192.0.2.7 22", "fd00::1 41468 fd00::7 2222"])
def test_the_environment_of_a_parent_tells_the_address(told: str) -> None:
    inner = ["env", "--ignore-environment", sys.executable, "-c", FIND, COLLECTIONS]
    # A shell that is replaced by its last command would not be a parent.
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *inner],
        env={**os.environ, "SSH_CONNECTION": told},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == told.split()[2], done.stderr
