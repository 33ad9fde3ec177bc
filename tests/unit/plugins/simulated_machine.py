"""What a test can do to a machine with simulated GPUs, and see of it, from outside NVML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lab.nvmlsim.install import GUEST


class Machine:
    """A machine whose GPUs, driver and programs a test moves from outside."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def simgpu(self, *words: object) -> str:
        """Play what happens to the GPUs: `simgpu --help` tells what can."""
        command = [sys.executable, str(GUEST / "simgpu.py"), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def writes(self) -> list[str]:
        """Return the calls that changed something, in order."""
        log = self.directory / "calls.log"
        lines = [line.split() for line in (log.read_text() if log.exists() else "").splitlines()]
        return [name for _pid, name, kind, _code in lines if kind == "write"]
