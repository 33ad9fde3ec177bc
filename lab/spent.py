"""Cost of a command on this machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import resource
import subprocess
import time
from pathlib import Path

from lab.errors import LabError

Figure = tuple[float, float]  # seconds of CPU, seconds by the clock


def spent(command: list[str | Path], environment: dict[str, str], folder: Path | None = None) -> Figure:
    """Run a command.

    Args:
        command: the command.
        environment: of the command.
        folder: where it runs; None for here.

    Returns:
        CPU seconds, those of its children included, and seconds by the clock.

    Raises:
        LabError: it failed; the message has the end of its output.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, env=environment, cwd=folder, check=False, capture_output=True, text=True)
    clock = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise LabError(f"{Path(command[0]).name} failed: {(done.stderr + done.stdout).strip()[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock
