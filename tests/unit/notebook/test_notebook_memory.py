# SPDX-License-Identifier: GPL-3.0-or-later
"""Users read in JupyterLab that a program of their notebook was killed for want of memory."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "packages" / "notebook" / "gpufarm_notices" / "memory.py"
# Of control groups version 2, and of version 1 beside the hierarchy of systemd (cgroups(7)).
KINDS = {
    "two": ("0::/a.service\n", "a.service/memory.events", "low 0\noom 3\noom_kill {}\n"),
    "one": (
        "4:memory:/a.service\n1:name=systemd:/b\n0::/b\n",
        "memory/a.service/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_is_told_for_some_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    paths, name, content = KINDS[kind]
    own, file = tmp_path / "own", tmp_path / name
    own.write_text(paths)
    file.parent.mkdir(parents=True)
    module: dict[str, Any] = runpy.run_path(str(SOURCE))
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])

    file.write_text(content.format(2))  # in the life of an earlier server with the same control group
    memory = module["Memory"](own, tmp_path)
    clock[0] = 1
    assert memory.notice() == ""
    file.write_text(content.format(3))
    assert "needed more memory than it has" in memory.notice()
    clock[0] += module["SHOWN"]
    assert memory.notice()
    clock[0] += 1
    assert memory.notice() == ""


@pytest.mark.parametrize("paths", ["", "0::/\n", "nonsense\n"])
def test_nothing_is_told_where_the_kernel_does_not_count(tmp_path: Path, paths: str) -> None:
    own = tmp_path / "own"
    own.write_text(paths)
    assert runpy.run_path(str(SOURCE))["Memory"](own, tmp_path).notice() == ""
