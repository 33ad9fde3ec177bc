"""Facts that a new machine reports about itself, gathered by the program as it is sent."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.nvmlsim import build
from lab.nvmlsim.install import GUEST

ROOT = Path(__file__).resolve().parents[3]
PROBE = ROOT / "tosca/gpufarm/probe/probe.py"


@pytest.mark.parametrize(("models", "gpus"), [(["a30", "a30"], 2), ([], 0)])
def test_gpus_are_those_of_the_driver(models: list[str], gpus: int, tmp_path: Path) -> None:
    library = build(ROOT / ".work" / "nvmlsim")
    (tmp_path / "libnvidia-ml.so.1").symlink_to(library)
    environment = {
        **os.environ,
        "NVMLSIM_STATE": str(tmp_path),
        "NVMLSIM_LIBRARY": str(library),
        "NVMLSIM_UID": "0",
        "LD_LIBRARY_PATH": str(tmp_path),
    }

    def run(*words: object) -> str:
        command = [sys.executable, *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    run(GUEST / "simgpu.py", "init", *models)
    found = json.loads(run(PROBE))
    assert len(found["gpus"]) == gpus
    assert all("A30" in one["model"] and one["memory"] and one["mig_capable"] for one in found["gpus"])
    assert found["cpus"] >= 1 and found["memory"] > 0 and found["disk"] > 0
