# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Homes of a server that did not answer when its client booted are mounted at their first use."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.timed import Answer
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.io import command
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.settings import command_settings
from shared_home_settings import EXPORT, role_settings

UNIT = "srv-nowhere.mount"
ASKED, STARTED = ["systemctl", "is-failed", "--quiet", UNIT], ["systemctl", "start", UNIT]


@pytest.mark.parametrize(
    ("kind", "failed", "ran"),
    [("nfs", True, [ASKED, STARTED]), ("nfs", False, [ASKED]), ("local", True, [])],
)
def test_only_a_mount_of_a_server_that_failed_is_tried_again(
    kind: str,
    failed: bool,
    ran: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = EXPORT if kind == "nfs" else "/dev/sdb1"
    settings = command_settings(
        {**role_settings(kind=kind, path="/srv/nowhere", source=source), "exports": False}
    )
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    words: list[list[str]] = []

    def run(asked: Sequence[str], _seconds: float) -> Answer:
        words.append(list(asked))
        return Answer(0 if failed else 1, "", "")

    monkeypatch.setattr(command, "SETTINGS", str(tmp_path / "settings.json"))
    monkeypatch.setattr(command.timed, "run", run)
    monkeypatch.setenv(command.INSIDE, "yes")
    monkeypatch.setenv("PATH", "")  # which the command sets
    monkeypatch.setattr(sys, "argv", ["gpufarm-home", "--check"])
    assert command.main() == 1
    assert words == ran
    assert "/srv/nowhere is not mounted" in capsys.readouterr().out
