# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVML while a machine boots, when the driver may still be loading."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ..gpu import DriverNotRunning
from .guarded import Calls, Guarded

Answer = TypeVar("Answer")

PAUSE = 2.0


def ask_at_boot(guarded: Guarded, question: Callable[[Calls], Answer], patience: float) -> Answer:
    """Ask NVML as soon as the driver answers.

    Waiting here, and not in systemd, holds back the units that are ordered after the one that waits.

    Args:
        patience: seconds to wait at most.

    Raises:
        GpuError: when the driver does not answer by then, is not there at all, or hangs.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return guarded.ask(question)
        except DriverNotRunning:
            if time.monotonic() + PAUSE > deadline:
                raise
            time.sleep(PAUSE)
