# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons of GPUs and slices (role gpu_health): files that say what is given to nobody.

A cordon protects users from a broken GPU, so a file that cannot be read is one.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

FOLDER = Path("/var/lib/gpufarm/cordons")
SUFFIX = ".json"


def read(folder: Path = FOLDER) -> dict[str, str]:
    """Return the reasons of the cordons, by the UUIDs of GPUs and slices.

    Raises:
        OSError: the folder cannot be read.
    """
    try:
        names = [file.name for file in folder.iterdir()]
    except FileNotFoundError:
        return {}
    # A hidden file is one that is being written; any other counts, whatever its name ends with.
    shown = sorted(name for name in names if not name.startswith("."))
    found = {name.removesuffix(SUFFIX): _reason(folder / name) for name in shown}
    return {uuid: reason for uuid, reason in found.items() if reason}


def _reason(file: Path) -> str:
    """Return the reason of a cordon; empty when it has just ended."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return f"cordoned by the damaged file {file}"
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            content: Any = json.load(stream)
        return f"cordoned by {content['by']} since {content['since']}: {content['reason']}"
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return f"cordoned by the damaged file {file}"
