# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are replaced as a whole: readers see the old content or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def replace(path: Path, content: bytes, mode: int = 0o600, owner: tuple[int, int] | None = None) -> None:
    """Replace a file, so that a crash leaves the old one or the new one.

    Args:
        path: the file; its folder must exist.
        content: what it will hold.
        mode: its permissions.
        owner: numbers of its user and group; None for those of this process, which then may lack the right to
            give files away.

    Raises:
        OSError: it is as it was, for instance because the disk is full.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if owner:
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
