# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON file that several processes change without losing one another's changes."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import files

Replaced = Callable[[dict[str, Any], dict[str, Any]], None]


# Seconds that a change may wait for another one; changes take milliseconds.
PATIENCE = 10
PAUSE = 0.005


class StoreError(Exception):
    """The file cannot be read or written; the text is for the administrator."""

    # Message to users on JupyterHub's pages and API.
    jupyterhub_message = (
        "This service cannot use its files at the moment. Try again in some minutes; if it lasts, tell the "
        "administrator of this service."
    )


class DamagedError(StoreError):
    """The file holds something else than it should."""


class JsonStore:
    """One JSON object in a file, changed only under a lock and replaced atomically.

    Args:
        path: the file; its folder must exist. The lock is a file beside it: a replaced file is a new inode.
        replaced: called under the lock, after a change, with what was stored before and what is stored now.
        remedy: what an administrator does about a damaged file.
    """

    def __init__(
        self,
        path: Path,
        replaced: Replaced = lambda before, content: None,
        remedy: str = "restore it from a backup",
    ) -> None:
        self.path = path
        self._replaced = replaced
        self._remedy = remedy
        self._lock_path = path.with_name(f"{path.name}.lock")

    def read(self) -> dict[str, Any]:
        """Return the object; empty when the file does not exist yet.

        Raises:
            DamagedError: the file holds something else than a JSON object.
            StoreError: it cannot be read.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise self.damaged(f"not valid JSON: {error}") from error
        if not isinstance(content, dict):
            raise self.damaged("not a JSON object")
        return content

    def damaged(self, why: str) -> DamagedError:
        """Return the error that says what is wrong with the file and what to do."""
        return DamagedError(f"{self.path} is damaged ({why}); {self._remedy}")

    def damage(self) -> str:
        """Return what is wrong with the file; empty when nothing is.

        Raises:
            StoreError: it cannot be read.
        """
        try:
            self.read()
        except DamagedError as error:
            return str(error)
        return ""

    def set_aside_if(self, damage: Callable[[], str]) -> str:
        """Rename a damaged file, so that the next change begins a new one.

        Args:
            damage: tells what is wrong with the file, empty when nothing is; called under the lock.

        Returns:
            Problem and new name; empty if there was none.

        Raises:
            StoreError: as `change`.
        """
        aside = self.path.with_name(f"{self.path.name}.damaged")
        with self._locked():
            found = damage()
            if not found:
                return ""
            try:
                self.path.replace(aside)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be renamed: {error.strerror}") from error
        return f"{found}. It is kept as {aside}"

    def mend(self) -> None:
        """Begin anew when the file is damaged: for what is only a record and comes again."""
        if self.damage():
            self.set_aside_if(self.damage)

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        """Lend the object to one caller at a time; what became of it is stored when the block ends well.

        Raises:
            StoreError: as `read`; or another process keeps the lock, or the file cannot be written, for
                instance because the disk is full. Then it is as it was.
        """
        with self._locked():
            before = self.read()
            content = json.loads(json.dumps(before))
            yield content
            if content == before:
                return
            try:
                self._replace(content)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
            self._replaced(before, content)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self._lock_path} cannot be opened: {error.strerror}") from error
        try:
            until = time.monotonic() + PATIENCE
            while not _is_taken(descriptor):
                if time.monotonic() >= until:
                    raise StoreError(f"another process has held {self._lock_path} for {PATIENCE} seconds")
                time.sleep(PAUSE)
            yield
        finally:
            os.close(descriptor)

    def _replace(self, content: dict[str, Any]) -> None:
        files.replace(self.path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
