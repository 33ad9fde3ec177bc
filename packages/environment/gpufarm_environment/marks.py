# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks of kernels that start: one that stays although its process is gone is a start that failed.

The home of the user may be on several machines at once, so each machine counts its own marks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")


def _prefix() -> str:
    return f"starting.{os.uname().nodename}.{BOOT.read_text(encoding='ascii')[:8]}."


def make(folder: Path) -> bool:
    """Mark that this process starts a kernel; return whether the home took the mark."""
    try:
        (folder / f"{_prefix()}{os.getpid()}").touch()
    except OSError:
        return False
    return True


def failed(folder: Path) -> list[Path]:
    """Return the marks of starts that failed."""
    return [mark for mark in _marks(folder) if not Path("/proc", mark.name.rpartition(".")[2]).exists()]


def clear(folder: Path) -> None:
    """Remove the mark of this process and those of starts that failed."""
    for mark in [*failed(folder), folder / f"{_prefix()}{os.getpid()}"]:
        with contextlib.suppress(OSError):
            mark.unlink()


def _marks(folder: Path) -> Iterator[Path]:
    prefix = _prefix()
    with contextlib.suppress(OSError):
        yield from [one for one in folder.iterdir() if one.name.startswith(prefix)]
