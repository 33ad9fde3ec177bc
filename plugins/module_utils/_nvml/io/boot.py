# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVML while a machine boots, when the driver may still be loading."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from ..gpu import DriverNotRunning
from .session import Nvml, session

PAUSE = 2.0


@contextlib.contextmanager
def session_at_boot(patience: float) -> Iterator[Nvml]:
    """Open NVML as soon as the driver answers.

    Waiting here, and not in systemd, holds back the units that are ordered after the one that waits.

    Args:
        patience: seconds to wait at most.

    Raises:
        GpuError: when the driver does not answer by then, or is not there at all.
    """
    deadline = time.monotonic() + patience
    with contextlib.ExitStack() as stack:
        while True:
            try:
                nvml = stack.enter_context(session())
                break
            except DriverNotRunning:
                if time.monotonic() + PAUSE > deadline:
                    raise
                time.sleep(PAUSE)
        yield nvml
