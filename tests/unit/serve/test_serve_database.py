# SPDX-License-Identifier: GPL-3.0-or-later
"""The database: its tables are those of the code, and what it cannot do now is told in a sentence."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from gpufarm.errors import BadInput
from gpufarm.serve.database import Database, Unavailable
from gpufarm.serve.deployments import Deployments, Filter, Wanted
from gpufarm.serve.people import User
from gpufarm.serve.quotas import Quotas
from gpufarm.serve.tables import Audit, Deployment, Run, Table
from sqlalchemy import event, select

both = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
ANN = User("https://iam.example.org", "ann")
WANTED = Wanted("notes", "text", machines=1, timeout=60)


@both
def test_versions_make_the_tables_of_the_code(database: Database) -> None:
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []


@both
def test_an_upgrade_can_be_repeated(database: Database) -> None:
    Deployments(database, Quotas(), "").create(ANN, WANTED)
    database.upgrade()
    assert Deployments(database, Quotas(), "").page(ANN, Filter(ANN), 0, 10)[1] == 1


@both
def test_tables_of_a_newer_release_are_refused(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BadInput, match="newer release"):
        database.upgrade()


def test_the_file_is_for_its_owner_alone(database: Database, tmp_path: Path) -> None:
    assert (tmp_path / "serve.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("url", ["", "mysql://x/y", "sqlite", "postgresql+nonsense://x/y"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(BadInput, match="database"):
        Database(url)


@pytest.mark.usefixtures("impatient")
def test_a_locked_database_is_told(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    database.upgrade()
    deployments = Deployments(database, Quotas(), "")
    with sqlite3.connect(tmp_path / "serve.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            deployments.create(ANN, WANTED)
        assert deployments.page(ANN, Filter(ANN), 0, 10) == ([], 0)  # reading goes on
        other.execute("ROLLBACK")
    deployments.create(ANN, WANTED)


def test_errors_have_no_values(database: Database) -> None:
    wanted = Wanted("notes", "text", machines=1, timeout=60, parameters={"password": "swordfish", "a": {1}})
    with pytest.raises(Exception, match="JSON") as refused:
        Deployments(database, Quotas(), "").create(ANN, wanted)
    assert "swordfish" not in str(refused.value)


def test_a_full_disk_is_told_and_leaves_nothing_half_done(database: Database) -> None:
    @event.listens_for(database.engine, "begin")
    def limit(connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 60")

    deployments = Deployments(database, Quotas(), "")
    with pytest.raises(Unavailable, match="full"):
        for _ in range(1000):
            deployments.create(ANN, WANTED)
    assert_whole(database)


def assert_whole(database: Database) -> None:
    """Each deployment has its run and its entry of the audit."""
    with database.reading() as session:
        made = set(session.scalars(select(Deployment.uuid)))
        assert made == set(session.scalars(select(Run.deployment)))
        assert made == set(session.scalars(select(Audit.deployment)))


WRITER = """
import sys
from gpufarm.serve.database import Database
from gpufarm.serve.deployments import Deployments, Wanted
from gpufarm.serve.people import User
from gpufarm.serve.quotas import Quotas
deployments = Deployments(Database(sys.argv[1]), Quotas(), "")
user = User("https://iam.example.org", "ann")
print("ready", flush=True)
while True:
    made = deployments.create(user, Wanted("notes", "text", machines=1, timeout=60))
    deployments.delete(user, made.uuid)
"""


@both
def test_killed_writers_leave_nothing_half_done(database: Database, database_url: str) -> None:
    chance = random.Random(7)
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, database_url], stdout=subprocess.PIPE)
        assert writer.stdout and writer.stdout.readline()
        time.sleep(chance.uniform(0.02, 0.2))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert_whole(database)
    Deployments(database, Quotas(), "").create(ANN, WANTED)
