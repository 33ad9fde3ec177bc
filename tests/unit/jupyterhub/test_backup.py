"""Archives of the hub: whole while the hub writes, and refused when they are not fit to be restored."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import stat
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from gpufarm_hub.people import numbers
from gpufarm_hub.upkeep import archive, backup, database
from gpufarm_hub.upkeep.archive import ArchiveError
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HUB = "https://hub.example.org:8888"
FILES = {"secrets/hub.env": b"KEY=1\n", "state/leases.json": b"{}", "persons/persons.json": b""}


@pytest.fixture
def ours(tmp_path: Path) -> backup.Places:
    """Return the places of a hub that has run."""
    for folder in ("state", "secrets", "tls", "persons", "backups"):
        (tmp_path / folder).mkdir()
    (tmp_path / "state" / "leases.json").write_text("{}")
    (tmp_path / "state" / "leases.json.lock").touch()
    (tmp_path / "state" / "leases.json.new").write_text("half")
    (tmp_path / "state" / "passwd.json").symlink_to("/etc/passwd")
    (tmp_path / "secrets" / "hub.env").write_text("KEY=1")
    (tmp_path / "tls" / "ca-key.pem").write_text("key")
    (tmp_path / "persons" / "persons.json").write_text("{}")
    settings = {
        "public_url": HUB,
        "state_folder": str(tmp_path / "state"),
        "secrets_folder": str(tmp_path / "secrets"),
        "nodes_folder": str(tmp_path / "nodes"),
        "persons_file": str(tmp_path / "persons" / "persons.json"),
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    with sqlite3.connect(tmp_path / "state" / "jupyterhub.sqlite") as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
        connection.executemany("INSERT INTO users VALUES (?)", [(f"user{n}",) for n in range(1000)])
    return backup.places(tmp_path / "settings.json")


def users(file: Path) -> int:
    with sqlite3.connect(file) as connection:
        return int(connection.execute("SELECT count(*) FROM users").fetchone()[0])


def test_what_comes_out_is_what_went_in() -> None:
    assert archive.unpack(archive.pack(FILES, HUB, "6.1.1", NOW), HUB, "6.1.1") == FILES


def test_the_checksum_of_the_whole_counts() -> None:
    packed = archive.pack(FILES, HUB, "6.1.1", NOW)
    trailer = 8  # CRC32 and length (RFC 1952, 2.3.1)
    with pytest.raises(ArchiveError, match="damaged"):
        archive.unpack(packed[:-trailer] + bytes(trailer), HUB, "6.1.1")


@given(st.data())
def test_no_damage_gets_through(data: st.DataObject) -> None:
    packed = archive.pack(FILES, HUB, "6.1.1", NOW)
    place = data.draw(st.integers(0, len(packed) - 1))
    damaged = bytearray(packed)
    damaged[place] ^= data.draw(st.integers(1, 255))
    cut = packed[:place]
    for content in (bytes(damaged), cut):
        with contextlib.suppress(ArchiveError):
            assert archive.unpack(content, HUB, "6.1.1") == FILES


@pytest.mark.parametrize(
    ("hub", "release", "sentence"),
    [
        ("https://other.example.org", "6.1.1", f"it belongs to {HUB}, and this is https://other"),
        (HUB, "5.4.6", "it is of JupyterHub 6.1.1, and 5.4.6 is installed; upgrade first"),
        (HUB, "6.0.10", "it is of JupyterHub 6.1.1"),
    ],
)
def test_archives_of_another_or_newer_hub_are_refused(hub: str, release: str, sentence: str) -> None:
    with pytest.raises(ArchiveError, match=sentence):
        archive.unpack(archive.pack(FILES, HUB, "6.1.1", NOW), hub, release)


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as writer:
        for member, content in members:
            member.size = len(content)
            writer.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def link(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    ("packed", "sentence"),
    [
        (b"", "damaged, or no archive"),
        (b"some text", "damaged, or no archive"),
        (tar((tarfile.TarInfo("a/b"), b"")), "was not made by this hub's backup"),
        (tar((tarfile.TarInfo("manifest.json"), b"[]")), "was not made by this hub's backup"),
        (tar((tarfile.TarInfo("manifest.json"), b'{"made_by": "x"}')), "was not made by this hub's backup"),
        (tar((tarfile.TarInfo("../etc/passwd"), b"")), "which leads elsewhere"),
        (tar((tarfile.TarInfo("state/../x"), b"")), "which leads elsewhere"),
        (tar((link("state/leases.json"), b"")), "which is no plain file"),
    ],
    ids=[
        *("nothing", "text", "no manifest", "manifest is a list", "manifest of others"),
        *("leads to the root", "leads up", "link"),
    ],
)
def test_what_was_not_made_here_is_refused(packed: bytes, sentence: str) -> None:
    with pytest.raises(ArchiveError, match=sentence):
        archive.unpack(packed, HUB, "6.1.1")


def test_names_that_lead_elsewhere_are_never_packed() -> None:
    with pytest.raises(ValueError, match="cannot be in an archive"):
        archive.pack({"state/../x": b""}, HUB, "6.1.1", NOW)


def test_a_backup_is_whole_while_somebody_writes(ours: backup.Places) -> None:
    with sqlite3.connect(ours.database) as writer:
        writer.execute("DELETE FROM users")  # not committed, so it has not happened
        files = backup.collect(ours)
        writer.rollback()
    assert set(files) == {
        "state/leases.json",
        "state/jupyterhub.sqlite",
        "secrets/hub.env",
        "tls/ca-key.pem",
        "persons/persons.json",
        "accounts/numbers.json",
    }
    database.check(files["state/jupyterhub.sqlite"])


def test_restored_is_what_was_saved(ours: backup.Places, tmp_path: Path) -> None:
    file = backup.make(ours, tmp_path / "backups", 3)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with sqlite3.connect(ours.database) as connection:
        connection.execute("DELETE FROM users")
    (tmp_path / "secrets" / "hub.env").write_text("KEY=2")
    (tmp_path / "secrets" / "later").touch()
    backup.restore(ours, backup.check(ours, file))
    assert users(ours.database) == 1000
    assert (tmp_path / "secrets" / "hub.env").read_text() == "KEY=1"
    assert stat.S_IMODE((tmp_path / "secrets" / "hub.env").stat().st_mode) == 0o600
    assert (tmp_path / "secrets" / "later").exists()


def test_the_authority_for_nodes_comes_back(ours: backup.Places, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    for name in ("ca.crt", "ca-key.pem"):
        (nodes / name).write_text(name)
    file = backup.make(ours, tmp_path / "backups", 3)
    for path in nodes.iterdir():
        path.unlink()
    nodes.rmdir()
    backup.restore(ours, backup.check(ours, file))
    # The proxy has an account of its own, and reads the certificate.
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (nodes, *nodes.iterdir())}
    assert modes == {"nodes": 0o755, "ca.crt": 0o644, "ca-key.pem": 0o600}
    assert (nodes / "ca-key.pem").read_text() == "ca-key.pem"


def test_the_oldest_archives_go(ours: backup.Places, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    for day in range(1, 5):
        (folder / f"jupyterhub-2025010{day}T000000Z.tar.gz").touch()
    (folder / "notes.txt").touch()
    made = backup.make(ours, folder, 2)
    left = {file.name for file in folder.iterdir()}
    assert left == {"notes.txt", "jupyterhub-20250104T000000Z.tar.gz", made.name}


def test_a_damaged_database_is_told(
    ours: backup.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytearray(ours.database.read_bytes())
    content[4096 : 4096 + 2000] = b"x" * 2000
    ours.database.write_bytes(bytes(content))
    arguments = ["backup", str(tmp_path / "settings.json"), "make", str(tmp_path / "backups"), "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit, match=r"jupyterhub\.sqlite is of no use"):
        backup.main()
    assert not list((tmp_path / "backups").iterdir())


def test_a_copy_of_a_database_that_is_damaged_is_refused(ours: backup.Places) -> None:
    content = bytearray(database.copy(ours.database))
    database.check(bytes(content))
    content[4096 : 4096 + 2000] = b"x" * 2000
    with pytest.raises(database.DatabaseError):
        database.check(bytes(content))


def test_an_archive_that_cannot_be_read_is_told(
    ours: backup.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["backup", str(tmp_path / "settings.json"), "check", "/nowhere.tar.gz"])
    with pytest.raises(SystemExit, match=r"/nowhere\.tar\.gz cannot be used: No such file"):
        backup.main()


def make_archive(ours: backup.Places, folder: Path, **files: bytes) -> Path:
    file = folder / "offer.tar.gz"
    file.write_bytes(archive.pack({**FILES, **files}, HUB, "6.1.1", NOW))
    return file


def test_numbers_of_somebody_else_here_are_refused_before_any_change(
    ours: backup.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {backup.NUMBERS: b'{"alice": {"uid": 1001, "gid": 1001}}'}
    file = make_archive(ours, tmp_path, **taken)
    sentence = "The user alice had the number 1001, which is that of the user carol here."
    monkeypatch.setattr(numbers, "conflicts", lambda wanted: [sentence] if wanted else [])
    monkeypatch.setattr(numbers, "restore", lambda wanted: pytest.fail("nothing may be changed"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for action in ("check", "restore"):
        monkeypatch.setattr(sys, "argv", ["backup", str(tmp_path / "settings.json"), action, str(file)])
        with pytest.raises(SystemExit) as caught:
            backup.main()
        assert str(caught.value).startswith(f"{sentence} Files in homes belong to numbers, so give ")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_archive_from_before_archives_had_numbers(
    ours: backup.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(numbers, "restore", made.append)
    backup.restore(ours, backup.check(ours, make_archive(ours, tmp_path)))
    assert made == [{}]
    assert (tmp_path / "secrets" / "hub.env").read_text() == "KEY=1\n"


def test_numbers_that_are_none_are_refused(ours: backup.Places, tmp_path: Path) -> None:
    file = make_archive(ours, tmp_path, **{backup.NUMBERS: b'{"alice": {"uid": 0, "gid": 0}}'})
    with pytest.raises(ArchiveError, match="'alice' has numbers of no person"):
        backup.check(ours, file)
