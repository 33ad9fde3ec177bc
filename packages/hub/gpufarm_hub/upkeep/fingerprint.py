# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether a service runs with the files that are there now.

``python -m gpufarm_hub.upkeep.fingerprint write RECORD FILE...`` before the service starts, and ``check``
instead of ``write`` later: it exits with 1 when a file has changed since. A name without a slash is that of
a Python module.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path


def fingerprint(files: Iterable[Path]) -> str:
    """Return a digest of the files; one that is not there counts as such."""
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(f"{file}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def located(name: str) -> Path:
    """Return the file of a name."""
    spec = None if "/" in name else find_spec(name)
    return Path(spec.origin if spec and spec.origin else name)


def main() -> int:
    """Run the program."""
    action, record, *names = sys.argv[1:]
    found = fingerprint(map(located, names))
    if action == "write":
        Path(record).write_text(found, encoding="ascii")
        return 0
    try:
        return int(Path(record).read_text(encoding="ascii") != found)
    except FileNotFoundError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
