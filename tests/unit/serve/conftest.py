# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases for the tests: SQLite and PostgreSQL."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from doubles.issuer import Issuer, issuer
from doubles.servers import server
from gpufarm.serve import database as databases
from gpufarm.serve.database import Database
from serve_site import Site, empty_database, site


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of a server of its own, without the name of a database."""
    package = server("postgresql", "usr/lib/postgresql/*/bin")
    programs = package.path
    account = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name  # it refuses root
    with TemporaryDirectory(prefix="gpufarm-pg-") as name:
        folder = Path(name)
        shutil.chown(folder, account)
        as_account: dict[str, Any] = {"user": account} if os.geteuid() == 0 else {}
        as_account["env"] = package.environment
        initdb = [programs / "initdb", "-D", folder / "data", "-U", "gpufarm", "-A", "trust", "-N"]
        subprocess.run(initdb, check=True, capture_output=True, cwd="/", **as_account)
        serving = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", "-k", name, "-c", "listen_addresses=", "-F"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **as_account,
        )
        try:
            ready = [programs / "pg_isready", "-h", name]
            while subprocess.run(ready, capture_output=True, env=package.environment).returncode:
                assert serving.poll() is None
                time.sleep(0.1)
            yield f"postgresql+psycopg://gpufarm@/{{}}?host={name}"
        finally:
            serving.send_signal(signal.SIGINT)  # a fast shutdown: the other one waits for connections
            serving.wait()


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database; parametrized indirectly with ``postgresql`` for the other kind."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield f"sqlite:///{tmp_path}/serve.db"
        return
    yield empty_database(request.getfixturevalue("postgresql"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "PATIENCE", 0.05)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    made.upgrade()
    yield made
    made.engine.dispose()


@pytest.fixture(scope="session")
def iam(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with issuer(tmp_path_factory.mktemp("iam")) as made:
        yield made


@pytest.fixture
def paas(tmp_path: Path, iam: Issuer, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The service; parametrized indirectly with other settings."""
    with site(tmp_path, iam, **getattr(request, "param", {})) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def database_paas(tmp_path: Path, iam: Issuer, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The service on each kind of database."""
    changes = {}
    if request.param == "postgresql":
        changes["database"] = empty_database(request.getfixturevalue("postgresql"))
    with site(tmp_path, iam, **changes) as made:
        yield made
