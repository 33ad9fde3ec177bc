"""The address that Ansible is connected to is found above sudo, and a systemd that hangs is told."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.timed import Answer
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io import read

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


def test_a_systemd_that_hangs_is_not_a_unit_that_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {0: True, 3: False}
    for status, runs in answers.items():
        monkeypatch.setattr(read.timed, "run", lambda *_, status=status: Answer(status, "", ""))
        assert read.is_active("systemd-networkd.service") == runs
    monkeypatch.setattr(read.timed, "run", lambda *_: Answer(None, "", ""))
    with pytest.raises(read.NetworkError, match="systemd does not tell in 20 seconds"):
        read.is_active("systemd-networkd.service")
