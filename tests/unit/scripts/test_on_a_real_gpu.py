"""The report on real GPUs is made on a machine that has Python and the driver, and nothing else of ours."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lab.nvmlsim import build
from lab.nvmlsim.install import GUEST

ROOT = Path(__file__).resolve().parents[3]


def test_it_needs_neither_the_packages_of_setup_nor_a_network(tmp_path: Path) -> None:
    programs, libraries, state = (tmp_path / name for name in ("bin", "lib", "state"))
    for folder in (programs, libraries, state):
        folder.mkdir()
    # No apt-get, make or ansible is among them.
    for name in ("bash", "dirname", "mkdir", "ln", "sed"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (programs / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / "python3").chmod(0o755)
    library = build(ROOT / ".work" / "nvmlsim")
    (libraries / "libnvidia-ml.so.1").symlink_to(library)
    environment = {"NVMLSIM_STATE": str(state), "NVMLSIM_LIBRARY": str(library), "NVMLSIM_UID": "0"}
    subprocess.run(
        [sys.executable, str(GUEST / "simgpu.py"), "init", "a100-40gb"],
        check=True,
        env={**os.environ, **environment},
    )
    made = subprocess.run(
        [ROOT / "scripts" / "on-a-real-gpu"],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PATH": str(programs), "LD_LIBRARY_PATH": str(libraries)},
    )
    assert not made.returncode, made.stderr
    assert [gpu["name"] for gpu in json.loads(made.stdout)["gpus"]] == ["NVIDIA A100-SXM4-40GB"]
