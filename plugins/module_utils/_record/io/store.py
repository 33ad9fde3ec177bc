# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of a machine: a file for each role, which only root reads, as states of secrets are in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..._host.io.files import replace_file
from ..entry import Entry, LostRecord, read, write

FOLDER = Path("/var/lib/gpufarm/record")
# Apart from the records, which may go while another run waits for the lock.
LOCK = Path("/run/gpufarm-record.lock")


class Store:
    """The records below a folder.

    Args:
        folder: where they are, or will be.
        lock: file that only one run at a time holds.
    """

    def __init__(self, folder: Path = FOLDER, lock: Path = LOCK) -> None:
        self.folder = folder
        self.lock = lock

    def _path(self, role: str) -> Path:
        return self.folder / f"{role}.json"

    def roles(self) -> list[str]:
        """Return the names of the roles that have a record, a broken one too."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def entries(self, role: str) -> dict[str, Entry]:
        """Return the record of a role by owner; empty if there is none.

        Raises:
            LostRecord: there is a file that is no record.
        """
        try:
            return read(self._path(role).read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise LostRecord(str(error.strerror)) from error

    def replace(self, role: str, entries: Mapping[str, Entry]) -> None:
        """Write the record of a role; one without entries goes, and the folder with the last one.

        Raises:
            OSError: the record is as it was.
        """
        if entries:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path(role), write(entries), 0o600)
            return
        self._path(role).unlink(missing_ok=True)
        if not self.roles():
            for left in self.folder.glob(".*.new"):  # of a write that was killed
                left.unlink()
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                self.folder.parent.rmdir()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs from the records.

        Raises:
            OSError: the lock cannot be made.
        """
        descriptor = os.open(self.lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
