# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that programs write on a host, safe against readers and a sudden end."""

from __future__ import annotations

import os
from pathlib import Path

# The folder of a metrics collector may belong to another user, whose links are not to be followed.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


def replace_file(file: Path, text: str, mode: int) -> None:
    """Write a file so that a reader, also after a power cut, sees it whole: the old one or the new one.

    Raises:
        OSError: the file is as it was, for instance because the disk is full; the error names it.
    """
    fresh = file.with_name(f".{file.name}.new")
    descriptor = os.open(fresh, _FLAGS, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            os.fchmod(descriptor, mode)
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        fresh.replace(file)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        # The kernel tells of a full disk without a name.
        error.filename = error.filename or str(file)
        raise
