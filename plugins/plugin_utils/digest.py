# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digest of the collection on the controller: another one may make other things of the same variables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

COLLECTION = Path(__file__).parents[2]
# Parts of the collection that end up on machines, or say how they do.
PARTS = ("plugins", "roles", "packages", "playbooks", "tosca")


def digest() -> str:
    """Return a digest of all files that decide what roles make."""
    found = hashlib.sha256()
    for path in sorted(_files()):
        found.update(f"{path.relative_to(COLLECTION)}\n".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _files() -> Iterator[Path]:
    for part in PARTS:
        for path in (COLLECTION / part).rglob("*"):
            if path.suffix not in (".pyc", ".md") and "__pycache__" not in path.parts and path.is_file():
                yield path


# Ansible imports actions before it forks for machines, so they inherit this.
VERSION = digest()
