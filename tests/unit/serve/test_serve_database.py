# SPDX-License-Identifier: GPL-3.0-or-later
"""The database: its tables are those of the code, and what it cannot do now is told in a sentence."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from gpufarm.errors import BadInput
from gpufarm.serve import prune
from gpufarm.serve.database import Database, Unavailable
from gpufarm.serve.deployments import Deployments, Filter, Wanted
from gpufarm.serve.people import User
from gpufarm.serve.quotas import Quotas
from gpufarm.serve.runs import Runs
from gpufarm.serve.tables import Audit, Callback, Console, Deployment, Run, Table
from serve_site import make_older
from sqlalchemy import event, select, text
from sqlalchemy.exc import IntegrityError

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


def older(url: str) -> str:
    """A database as the first release left it."""
    made = Database(url)
    made.upgrade()
    make_older(made)
    made.engine.dispose()
    return url


def test_a_file_is_copied_before_its_tables_change(database_url: str, tmp_path: Path) -> None:
    made = Database(older(database_url))
    Database(database_url).outdated()  # only asks
    assert [path.name for path in tmp_path.glob("serve.db.*")] == []
    assert made.outdated() == "0001"
    made.upgrade()
    copy = tmp_path / "serve.db.0001"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert Database(f"sqlite:///{copy}").outdated() == "0001"
    assert made.outdated() == ""
    before = copy.read_bytes()
    made.upgrade()
    assert copy.read_bytes() == before


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_tables_of_postgresql_are_changed_by_an_administrator_only(database_url: str) -> None:
    made = Database(older(database_url))
    for ask in (made.outdated, made.upgrade):
        with pytest.raises(BadInput, match=r"version 0001.*pg_dump"):
            ask()
    made.upgrade(backed_up=True)
    assert made.outdated() == ""


def test_a_database_that_is_not_there_is_not_made_to_ask(tmp_path: Path) -> None:
    assert Database(f"sqlite:///{tmp_path}/other.db").outdated() == ""
    assert [*tmp_path.iterdir()] == []


def test_a_folder_of_a_group_has_files_of_the_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    Database(older(f"sqlite:///{tmp_path}/serve.db")).upgrade()
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("serve.db*")}
    assert files.pop("serve.db") == files.pop("serve.db.0001") == 0o660
    assert set(files.values()) <= {0o660}


@both
def test_what_is_long_gone_is_forgotten_and_the_audit_stays(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "AT_ONCE", 2)
    deployments = Deployments(database, Quotas(), "")
    callback = replace(WANTED, callback="https://dashboard.example.org/")
    made = [deployments.create(ANN, callback).uuid for _ in range(7)]
    for uuid in made[:5]:
        deployments.delete(ANN, uuid)
    with database.changing() as session:
        days = {made[0]: 3, made[1]: 3, made[2]: 3, made[3]: 1, made[5]: 3}
        for uuid, ago in days.items():
            session.get_one(Deployment, uuid).updated -= ago * prune.DAY
    assert prune.forget(database, 0) == 0
    assert prune.forget(database, 2) == 3
    assert prune.forget(database, 2) == 0
    with database.reading() as session:
        assert set(session.scalars(select(Deployment.uuid))) == {*made[3:]}
        assert set(session.scalars(select(Run.deployment))) == {*made[3:]}
        assert set(session.scalars(select(Callback.deployment))) == {*made[3:5]}
        assert set(session.scalars(select(Audit.deployment))) == {*made}


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


@both
def test_what_the_tables_refuse_is_not_tried_again(database: Database) -> None:
    uuid = Deployments(database, Quotas(), "").create(ANN, WANTED).uuid
    with database.changing() as session:
        session.add(Console(deployment=uuid))
    with pytest.raises(IntegrityError), database.changing() as session:
        session.add(Console(deployment=uuid))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_of_two_workers_at_once_the_later_one_tries_again(database: Database) -> None:
    uuid = Deployments(database, Quotas(), "").create(ANN, WANTED).uuid
    with database.changing() as session:
        session.add(Run(deployment=uuid, kind="UPDATE", created=time.time()))
    runs, found = Runs(database, ""), []

    def claim() -> None:
        with pytest.raises(Unavailable, match="another worker has just begun a run"):
            runs.claim("late", 60)
        found.append(runs.claim("late", 60))

    def waiting() -> bool:
        locked = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        with database.reading() as other:
            return bool(other.scalar(text(locked)))

    late = threading.Thread(target=claim)
    with database.changing() as session:
        first = session.scalars(select(Run).order_by(Run.id).limit(1)).first()
        assert first
        first.state, first.worker, first.lease = "running", "early", time.time() + 60
        session.flush()
        late.start()
        end = time.monotonic() + 30
        while not waiting():
            assert time.monotonic() < end, "the later one does not wait"
            time.sleep(0.05)
    late.join()
    assert found == [None]


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


def test_a_copy_of_a_database_that_is_in_use_can_be_put_back(database_url: str, tmp_path: Path) -> None:
    """As docs/serve.md says; `.backup` of sqlite3(1) is this function of its library."""
    file, copy = tmp_path / "serve.db", tmp_path / "copy"
    made = Database(database_url)
    made.upgrade()
    first = Deployments(made, Quotas(), "").create(ANN, WANTED).uuid
    writer = subprocess.Popen([sys.executable, "-c", WRITER, database_url], stdout=subprocess.PIPE)
    assert writer.stdout and writer.stdout.readline()
    with sqlite3.connect(file) as live, sqlite3.connect(copy) as target:
        live.backup(target)
    later = Deployments(made, Quotas(), "").create(ANN, WANTED).uuid
    writer.kill()
    writer.wait()
    writer.stdout.close()
    assert (tmp_path / "serve.db-wal").stat().st_size  # changes that SQLite would apply to the copy
    made.engine.dispose()

    for name in ("serve.db", "serve.db-wal", "serve.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    copy.rename(file)
    restored = Database(database_url)
    restored.upgrade()
    assert_whole(restored)
    with restored.reading() as session:
        found = set(session.scalars(select(Deployment.uuid)))
    assert first in found and later not in found
    Deployments(restored, Quotas(), "").create(ANN, WANTED)
