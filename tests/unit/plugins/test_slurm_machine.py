"""A machine tells what Slurm has to know of it, also which release apt offers."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io import machine

KNOWN = """\
slurm-wlm-basic-plugins:
  Installed: (none)
  Candidate: 24.11.5-4
  Version table:
     24.11.5-4 500
        500 http://deb.example.org/debian trixie/main amd64 Packages
"""
PLUGIN = KNOWN.replace("basic-plugins", "nvml-plugin")
# A package that another one only names.
NAMED = "slurm-wlm-nvml-plugin:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"

Programs = Callable[..., None]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Have programs of these names, which print these texts, and no others."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(**texts: str) -> None:
        for name, text in texts.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{text}END\n")
            path.chmod(0o755)

    return make


@pytest.mark.parametrize(
    ("policy", "release", "plugin"),
    [
        (KNOWN + PLUGIN, "24.11", True),
        (KNOWN + NAMED, "24.11", False),
        (KNOWN, "24.11", False),
        ("", "", False),
    ],
)
def test_apt_tells_the_release_and_whether_there_is_the_plugin(
    programs: Programs, policy: str, release: str, plugin: bool
) -> None:
    programs(apt_cache=policy)
    found = machine.read()
    assert (found["offered_release"], found["nvml_plugin"]) == (release, plugin)


def test_a_machine_without_apt_offers_nothing(programs: Programs) -> None:
    programs(slurmd="slurm 24.11.3\n")
    found = machine.read()
    assert (found["installed_release"], found["offered_release"]) == ("24.11", "")
    assert found["cpus"] > 0
    assert found["memory_mib"] > 0
