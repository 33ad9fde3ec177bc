# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether a service runs with the files that are there now.

``python -m gpufarm_hub.upkeep.fingerprint write RECORD PATH...`` before the service starts, and ``check``
instead of ``write`` later: it exits with 1 when a file has changed since.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a digest of the files at and below the paths, without compiled Python."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def main() -> int:
    """Run the program."""
    action, record, *names = sys.argv[1:]
    found = fingerprint(Path(name) for name in names)
    if action == "write":
        Path(record).write_text(found, encoding="ascii")
        return 0
    try:
        return int(Path(record).read_text(encoding="ascii") != found)
    except FileNotFoundError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
