# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a SQLite database, made while somebody writes to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

TIMEOUT = 60  # seconds to wait for another writer


class DatabaseError(Exception):
    """A database that is damaged; the text says how."""


def copy(file: Path) -> bytes:
    """Return a copy as it is at one moment (SQLite, "Online Backup API").

    Raises:
        DatabaseError: it is damaged or locked for too long.
    """
    try:
        with (
            closing(sqlite3.connect(f"file:{file}?mode=rw", uri=True, timeout=TIMEOUT)) as source,
            closing(sqlite3.connect(":memory:")) as target,
        ):
            source.backup(target)
            _look(target)
            return target.serialize()
    except sqlite3.Error as error:
        raise DatabaseError(str(error)) from error


def check(content: bytes) -> None:
    """Look whether a copy is sound.

    Raises:
        DatabaseError: it is not.
    """
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(content)
            _look(connection)
    except sqlite3.Error as error:
        raise DatabaseError(str(error)) from error


def _look(connection: sqlite3.Connection) -> None:
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise DatabaseError(said)
