# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit log: who had which slice when, one JSON object per line.

It is opened for each line, so logrotate can move it away at any time.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from gpufarm_hub.store import StoreError


def record(path: Path, event: str, owner: str, **details: object) -> None:
    """Add a line.

    Args:
        path: the log; its folder must exist.
        event: what happened, such as ``taken``.
        owner: user and server name, ``alice/`` for the default server.
        details: more about it; values that JSON can hold.

    Raises:
        StoreError: it cannot be written, for instance because the disk is full.
    """
    user, _slash, server = owner.partition("/")
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": event,
        "user": user,
        "server": server,
        **details,
    }
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, (json.dumps(line) + "\n").encode())  # one write, so lines never mix
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
