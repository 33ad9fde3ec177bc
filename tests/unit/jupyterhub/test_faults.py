"""Pages and leases while the hub's files and database cannot be used."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hub_process import Browser, HubProcess, slices

from lab.pages import parse

FILES = "This service cannot use its files at the moment."
ANY = "This service has a problem of its own at the moment."


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.partition(slices(1))
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture
def alice(process: HubProcess) -> Iterator[Browser]:
    browser = Browser(process, "alice")
    yield browser
    if browser.running():
        browser.stop()
    browser.http.close()


def held(process: HubProcess) -> list[str]:
    leases = json.loads((process.folder / "leases.json").read_text())["leases"]
    return list(leases)


def test_while_the_disk_is_full_nobody_gets_a_slice_and_users_read_why(
    process: HubProcess, alice: Browser
) -> None:
    alice.spawn(gpu="1g.10gb")
    alice.stop()
    (process.folder / "disk-full").touch()
    try:
        said = alice.spawn(gpu="1g.10gb").messages
    finally:
        (process.folder / "disk-full").unlink()
    assert FILES in said[0] and "Errno" not in said[0]
    assert held(process) == []
    assert alice.spawn(gpu="1g.10gb").messages == []
    assert held(process) == ["alice/"]


@contextlib.contextmanager
def full(log: Path) -> Iterator[None]:
    """Have no room for a line of the audit log, whose disk may be another one."""
    kept = log.rename(log.with_name("kept"))
    log.symlink_to("/dev/full")
    yield
    kept.replace(log)


def test_while_the_audit_log_cannot_be_written_nobody_gets_a_slice_and_users_read_why(
    process: HubProcess, alice: Browser
) -> None:
    alice.spawn(gpu="1g.10gb")
    alice.stop()
    with full(process.folder / "audit.jsonl"):
        said = alice.spawn(gpu="1g.10gb").messages
    assert FILES in said[0] and "Errno" not in said[0]
    assert held(process) == []
    assert alice.spawn(gpu="1g.10gb").messages == []


def test_a_hub_starts_while_its_audit_log_cannot_be_written(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, [])
    hub.partition(slices(1))
    hub.start()
    Browser(hub, "alice").spawn(gpu="1g.10gb")
    hub.kill()  # with the notebook
    with full(tmp_path / "audit.jsonl"):
        hub.start()
    hub.kill()


def test_while_the_database_is_locked_users_read_a_sentence_and_leases_are_kept(
    process: HubProcess, alice: Browser
) -> None:
    alice.spawn(gpu="1g.10gb")
    carol = Browser(process, "carol")
    with closing(sqlite3.connect(process.folder / "jupyterhub.sqlite", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        answer = carol.http.post(f"/hub/spawn?_xsrf={carol.xsrf}", data={"memory": "1G"})
        database.execute("ROLLBACK")
    assert answer.status_code == 500
    said = " ".join(parse(answer.text).messages)
    assert ANY in said, said
    assert "sqlite" not in answer.text.lower()
    assert held(process) == ["alice/"]
    carol.spawn()
    carol.stop()
    carol.http.close()
    alice.stop()
    assert held(process) == []


def test_while_the_database_is_locked_nobody_is_taken_for_a_stranger(
    process: HubProcess, alice: Browser
) -> None:
    token = alice.api("POST", "/users/alice/tokens", json={}).json()["token"]
    (process.folder / "long-ago").touch()
    try:
        with closing(sqlite3.connect(process.folder / "jupyterhub.sqlite", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            page = alice.http.get("/hub/home", follow_redirects=False)
            form = alice.http.post(f"/hub/spawn?_xsrf={alice.xsrf}", data={"memory": "1G"})
            asked = alice.http.get("/hub/api/user", headers={"Authorization": f"token {token}"})
            database.execute("ROLLBACK")
    finally:
        (process.folder / "long-ago").unlink()
    assert [answer.status_code for answer in (page, form, asked)] == [503, 503, 503]
    assert all(ANY in " ".join(parse(answer.text).messages) for answer in (page, form))
    assert ANY in asked.json()["message"]
    assert alice.page("/hub/home").url.path == "/hub/home"


def test_a_hub_with_a_damaged_file_of_leases_starts(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, [])
    hub.partition(slices(1))
    (tmp_path / "leases.json").write_text('{"leases": {"alice/"')
    hub.start()
    try:
        browser = Browser(hub, "alice")
        browser.spawn(gpu="1g.10gb")
        assert held(hub) == ["alice/"]
        browser.http.close()
    finally:
        hub.kill()


def test_who_works_is_let_in_while_nobody_can_tell_who_holds_what(
    process: HubProcess, alice: Browser
) -> None:
    alice.spawn(gpu="1g.10gb")
    carol = Browser(process, "carol")
    leases, notices = process.folder / "leases.json", process.folder / "notices.json"
    kept = leases.with_name("kept")
    leases.rename(kept)
    leases.mkdir()  # so that it can be neither read nor replaced
    notices.write_text("{")
    try:
        assert alice.page("/hub/home").status_code == 200
        form = carol.page("/hub/spawn")
        assert "It is not known at the moment which GPU slices are free." in form.text
        assert FILES in carol.spawn(gpu="1g.10gb").messages[0]
    finally:
        leases.rmdir()
    # Neither lost nor damaged it costs alice her slice.
    for content in (None, "{", '{"leases": {}}'):
        leases.unlink(missing_ok=True)
        if content:
            leases.write_text(content)
        assert "You wait as number 1 of 1" in carol.spawn(gpu="1g.10gb").messages[0]
        assert held(process) == ["alice/"]
    carol.api("DELETE", "/gpufarm/users/carol/queue/")
    carol.http.close()


def test_a_hub_starts_while_its_gpus_do_not_answer_and_its_leases_are_lost(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, [])
    hub.partition(slices(1))
    for name in ("leases.json", "notices.json", "use.json"):
        (tmp_path / name).write_text("{")
    (tmp_path / "no-gpus").touch()
    hub.start()
    try:
        browser = Browser(hub, "alice")
        assert browser.page("/hub/home").status_code == 200
        assert "The GPUs of this machine do not answer" in browser.spawn(gpu="1g.10gb").messages[0]
        (tmp_path / "no-gpus").unlink()
        browser.spawn(gpu="1g.10gb")
        assert held(hub) == ["alice/"]
        browser.http.close()
    finally:
        hub.kill()
