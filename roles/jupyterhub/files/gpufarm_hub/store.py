# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON file that several processes change without losing one another's changes."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Replaced = Callable[[dict[str, Any], dict[str, Any]], None]


class StoreError(Exception):
    """The file cannot be read as what this program wrote."""


class JsonStore:
    """One JSON object in a file, changed only under a lock and replaced atomically.

    Args:
        path: the file; its folder must exist. The lock is a file beside it: a replaced file is a new inode.
        replaced: called under the lock, after a change, with what was stored before and what is stored now.
    """

    def __init__(self, path: Path, replaced: Replaced = lambda before, content: None) -> None:
        self.path = path
        self._replaced = replaced
        self._lock_path = path.with_name(f"{path.name}.lock")

    def read(self) -> dict[str, Any]:
        """Return the object; empty when the file does not exist yet.

        Raises:
            StoreError: the file holds something else than a JSON object.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StoreError(f"{self.path} is not valid JSON ({error}); restore or remove it") from error
        if not isinstance(content, dict):
            raise StoreError(f"{self.path} does not hold a JSON object; restore or remove it")
        return content

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        """Lend the object to one caller at a time; what became of it is stored when the block ends well."""
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = self.read()
            content = json.loads(json.dumps(before))
            yield content
            if content != before:
                self._replace(content)
                self._replaced(before, content)
        finally:
            os.close(descriptor)

    def _replace(self, content: dict[str, Any]) -> None:
        new = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1, sort_keys=True)
            stream.write("\n")
            stream.flush()
            os.fsync(descriptor)
        new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
