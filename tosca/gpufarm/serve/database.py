# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens the database, brings its tables up to date, and gives transactions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.orm import Session

from gpufarm import modes
from gpufarm.errors import BadInput, GpufarmError

# Seconds that a transaction waits for another one. A client of the interface waits 60 seconds at most.
PATIENCE = 10
_REFUSED = (
    "database: its tables are of version {old}, and this release changes them; make a backup, such as with "
    "pg_dump, stop server and workers, and run: gpufarm serve --settings FILE upgrade"
)
# Of PostgreSQL: transactions that reserve, and those that change the tables, follow each other.
_LOCK = 0x6770_7566


class Unavailable(GpufarmError):
    """The database does not answer now, or its disk is full; nothing was changed."""


class Database:
    """A database with the tables of `gpufarm.serve.tables`."""

    def __init__(self, url: str) -> None:
        """Name the database; nothing is opened yet.

        Args:
            url: such as ``sqlite:////var/lib/gpufarm-serve/serve.db`` or ``postgresql+psycopg://...``.

        Raises:
            BadInput: it is no URL of a database of these kinds.
        """
        try:
            self.url = make_url(url)
        except ArgumentError:  # the text may have a password in it, so it is not repeated
            raise BadInput("database: the text is no URL; write sqlite:////FILE") from None
        if self.url.get_backend_name() not in ("sqlite", "postgresql"):
            raise BadInput(
                f"database: {self.url.get_backend_name()} is not supported; use sqlite or postgresql+psycopg"
            )
        self._lite = self.url.get_backend_name() == "sqlite"
        wait: dict[str, Any] = {"timeout": PATIENCE} if self._lite else {"connect_timeout": PATIENCE}
        try:
            self.engine: Engine = create_engine(
                self.url,
                pool_pre_ping=not self._lite,
                connect_args=wait,
                hide_parameters=True,  # a value may be a secret, and errors are written to the log
            )
        except (NoSuchModuleError, ImportError) as error:
            raise BadInput(f"database: {error}; write postgresql+psycopg://USER@HOST/NAME") from error
        if self._lite:
            event.listen(self.engine, "connect", _of_sqlite)
            event.listen(self.engine, "begin", _begin_of_sqlite)

    def outdated(self) -> str:
        """Tell whether tables are there that `upgrade` would change; nothing is touched.

        Returns:
            Their version; empty if there are none, or if they are up to date.

        Raises:
            BadInput: they are changed by an administrator only, and have to be changed.
            Unavailable: the database does not answer.
        """
        if self._lite and not (self.url.database and Path(self.url.database).exists()):
            return ""
        engine = self.engine.execution_options(gpufarm_reads=True)
        with self._translated(), engine.connect() as connection:
            old = _outdated(connection)
        if old and not self._lite:
            raise BadInput(_REFUSED.format(old=old))
        return old

    def upgrade(self, *, backed_up: bool = False) -> None:
        """Make the tables, or bring them up to date. Servers and workers that start together wait here.

        Before the tables of SQLite are changed, the file is copied to one beside it, which has their version
        at the end of its name.

        Args:
            backed_up: whether an administrator says that there is a backup of PostgreSQL.

        Raises:
            BadInput: a newer release has made the tables, or they are in PostgreSQL and of an older one.
            Unavailable: the database does not answer.
        """
        if self._lite and self.url.database and not Path(self.url.database).exists():
            os.close(modes.opened(Path(self.url.database), os.O_RDWR))
        with self._translated(), self.engine.begin() as connection:
            self._queue_up(connection)
            old = _outdated(connection)
            if old and not self._lite and not backed_up:
                raise BadInput(_REFUSED.format(old=old))
            if old and self._lite and self.url.database:
                _copy(Path(self.url.database), old)
            config = _config()
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise BadInput(
                    f"database: its tables are of a newer release of gpufarm ({error}); install that release"
                ) from error

    @contextlib.contextmanager
    def changing(self) -> Iterator[Session]:
        """Give a transaction that changes something, and commit it at the end.

        Yields:
            The session.

        Raises:
            Unavailable: the database does not answer, is locked for too long, or its disk is full.
        """
        with self._translated(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextlib.contextmanager
    def reserving(self) -> Iterator[Session]:
        """Give a transaction during which no other one reserves, so that sums in it stay true.

        Yields:
            The session.

        Raises:
            Unavailable: as in `changing`.
        """
        with self.changing() as session:
            self._queue_up(session)
            yield session

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a transaction that only reads, and waits for no other one.

        Yields:
            The session.

        Raises:
            Unavailable: the database does not answer.
        """
        engine = self.engine.execution_options(gpufarm_reads=True)
        with self._translated(), Session(engine, expire_on_commit=False) as session:
            yield session

    def _queue_up(self, connection: Any) -> None:
        if not self._lite:  # SQLite has one writer at a time anyhow
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DataError, IntegrityError):  # another attempt would not mend it
            raise
        except DBAPIError as error:
            raise Unavailable(f"the database cannot be used now: {error.orig}; try again later") from error
        except NoConnection as error:
            raise Unavailable("the database is too busy now; try again later") from error


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("schema")))
    return config


def _outdated(connection: Any) -> str:
    """The version of tables that are there, if it is an older one."""
    found = MigrationContext.configure(connection).get_current_revision()
    known = [entry.revision for entry in ScriptDirectory.from_config(_config()).walk_revisions()]
    return found if found in known[1:] else ""


def _copy(path: Path, version: str) -> None:
    """Copy a file of SQLite that others may read at this moment."""
    fresh = path.with_name(f"{path.name}.fresh")
    fresh.unlink(missing_ok=True)
    os.close(modes.opened(fresh, os.O_RDWR))
    with contextlib.closing(sqlite3.connect(path)) as old, contextlib.closing(sqlite3.connect(fresh)) as new:
        old.backup(new)
    fresh.replace(path.with_name(f"{path.name}.{version}"))


def _of_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says so
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_of_sqlite(connection: Any) -> None:
    # A transaction that reads first and writes later could not wait for another writer.
    reads = connection.get_execution_options().get("gpufarm_reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
