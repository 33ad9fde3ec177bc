# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are replaced as a whole: whoever reads them sees the old ones or the new ones."""

from __future__ import annotations

import os
from pathlib import Path


def replace(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file, so that a crash leaves the old one or the new one.

    Args:
        path: the file; its folder must exist.
        text: what it will hold.
        mode: its permissions.

    Raises:
        OSError: it is as it was, for instance because the disk is full.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def text_of(path: Path) -> str:
    """Return what a file holds; an empty text without one."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
