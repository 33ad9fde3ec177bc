# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program that must not be waited for forever, as one that touches a file system that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

# A process that hangs in the kernel does not end when it is killed; after so many seconds it is left behind.
GRACE = 2.0


class Answer(NamedTuple):
    """How a program ended: its exit status, None when it did not end in time, and what it wrote."""

    status: int | None
    output: str
    errors: str


def run(words: Sequence[str], seconds: float) -> Answer:
    """Run a program for a limited time.

    Args:
        words: program and arguments.
        seconds: time after which it is killed, together with what it has started.

    Raises:
        OSError: the program cannot be started.
    """
    process = subprocess.Popen(  # pylint: disable=consider-using-with  # one that hangs is not waited for
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={**os.environ, "LC_ALL": "C"},
        universal_newlines=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            output, errors = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            output, errors = "", ""
        return Answer(None, output, errors)
    return Answer(process.returncode, output, errors)
