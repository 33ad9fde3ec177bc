# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host, and programs that run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.nvmlsim.install import GUEST
from lab.patience import PATIENCE


class Machine:
    """A simulated host in a directory. Programs find its library by LD_LIBRARY_PATH, and count as root."""

    def __init__(self, directory: Path, library: Path) -> None:
        self.environment = os.environ | {
            "NVMLSIM_STATE": str(directory),
            "NVMLSIM_LIBRARY": str(library),
            "NVMLSIM_UID": "0",
            "LD_LIBRARY_PATH": str(library.parent),
        }

    def run(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in words]
        environment = self.environment | environment
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    def simgpu(self, *words: object) -> str:
        done = self.run(sys.executable, GUEST / "simgpu.py", *words)
        assert not done.returncode, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        return json.loads(self.simgpu("status", "--json"))
