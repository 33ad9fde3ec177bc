# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the hub's keys once, on the machine that uses them: ``python -m gpufarm_hub.upkeep.keys FOLDER``."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path


def make(folder: Path) -> None:
    """Write the keys (mode 0600) unless they are there; ``monitoring_token`` comes last.

    The hub encrypts users' tokens with JUPYTERHUB_CRYPT_KEY and opens the proxy with CONFIGPROXY_AUTH_TOKEN.
    With the token of monitoring its metrics can be read.
    """
    for name, start in (
        ("proxy.env", "CONFIGPROXY_AUTH_TOKEN="),
        ("hub.env", "JUPYTERHUB_CRYPT_KEY="),
        ("monitoring_token", ""),
    ):
        path = folder / name
        if path.exists():
            continue
        new = folder / f"{name}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(f"{start}{secrets.token_hex(32)}\n")
            stream.flush()
            os.fsync(stream.fileno())
        new.rename(path)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
