# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock that does not jump when somebody sets the machine's time."""

from __future__ import annotations

import time


def steady() -> float:
    """Return the seconds since the machine booted, with those that it slept (clock_gettime(2))."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_BOOT = time.time() - steady()


def epoch() -> float:
    """Return the seconds since the epoch as the machine's time was when this process started."""
    return _BOOT + steady()
