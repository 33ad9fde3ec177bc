"""Code that a host's Python has compiled from an archive is not compiled again, and never causes errors."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lab import bytecode

# The system's own Python: another user may not reach a checkout that lies in somebody's home.
PYTHON = os.path.realpath(sys.executable)


class Guest:
    """A Python that starts with the bench's sitecustomize.py, and modules in archives for it."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = tmp_path / "cache/bytecode"
        monkeypatch.setattr(bytecode, "FOLDER", str(self.folder))
        self.customize = tmp_path / "root/etc/python3.11/sitecustomize.py"
        self.customize.parent.mkdir(parents=True)
        self.customize.write_text("# what the distribution has there\n")
        self.bind = bytecode.install(tmp_path / "root", tmp_path / "cache")
        self.archives = tmp_path / "archives"
        self.archives.mkdir()

    def run(self, source: str, archive: str = "a.zip", **options: int) -> subprocess.CompletedProcess[str]:
        """Import a module of this source out of an archive."""
        path = self.archives / archive
        with zipfile.ZipFile(path, "w") as stream:
            stream.writestr("sent.py", source)
        return subprocess.run(
            [PYTHON, "-c", f"import sys; sys.path.insert(0, {str(path)!r}); import sent"],
            env={"PYTHONPATH": str(self.customize.parent)},
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    @property
    def kept(self) -> list[Path]:
        return sorted(self.folder.iterdir())


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    return Guest(tmp_path, monkeypatch)


def test_it_is_added_once_to_what_the_distribution_has(guest: Guest, tmp_path: Path):
    assert guest.customize.read_text().startswith("# what the distribution has there\n")
    before = guest.customize.read_text()
    assert bytecode.install(tmp_path / "root", tmp_path / "cache") == guest.bind
    assert guest.customize.read_text() == before
    assert guest.bind.source == guest.folder and not guest.bind.read_only


def test_the_second_import_takes_what_the_first_compiled(guest: Guest):
    assert guest.run("print('one')").stdout == "one\n"
    assert guest.run("print('two')").stdout == "two\n"
    one, two = guest.kept
    assert {guest.run("print('one')").stdout, guest.run("print('two')").stdout} == {"one\n", "two\n"}
    one_code, two_code = one.read_bytes(), two.read_bytes()
    one.write_bytes(two_code)
    two.write_bytes(one_code)
    assert guest.run("print('one')").stdout == "two\n", "the source was compiled again"


def test_a_host_into_which_nothing_is_bound_begins_with_a_copy(guest: Guest, tmp_path: Path):
    guest.run("print('one')")
    (one,) = guest.kept
    one.with_name(f"{one.name}.0123456789abcdef").write_text("being written")
    bytecode.install_copy(tmp_path / "root", tmp_path / "cache")
    copy = tmp_path / "root" / bytecode.FOLDER.lstrip("/")
    assert [path.name for path in copy.iterdir()] == [one.name]
    assert (copy / one.name).read_bytes() == one.read_bytes()


def test_a_traceback_names_the_archive_of_today(guest: Guest):
    guest.run("1 / 0", archive="yesterday.zip")
    said = guest.run("1 / 0", archive="today.zip").stderr
    assert len(guest.kept) == 1
    assert "today.zip/sent.py" in said and "yesterday.zip" not in said


@pytest.mark.parametrize("damage", [b"", b"x", b"\xe3\x00", b"N"], ids=["empty", "unknown", "cut", "no code"])
def test_damaged_code_is_compiled_again(guest: Guest, damage: bytes):
    guest.run("print('one')")
    (one,) = guest.kept
    sound = one.read_bytes()
    one.write_bytes(damage)
    assert guest.run("print('one')").stdout == "one\n"
    assert one.read_bytes() == sound


def test_an_error_of_syntax_stays_one(guest: Guest):
    for _ in range(2):
        assert "SyntaxError" in guest.run("print(").stderr
    assert guest.kept == []


def test_without_the_folder_it_does_without(guest: Guest):
    guest.folder.rmdir()
    assert guest.run("print('one')").stdout == "one\n"
    assert not guest.folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: needs root")
def test_who_may_not_write_there_does_without(guest: Guest, tmp_path: Path):
    for parent in (tmp_path, *tmp_path.parents):
        if "pytest-of-" in str(parent):  # what pytest made; with xdist there is a folder more
            parent.chmod(0o755)
    done = guest.run("print('one')", user=65534)
    assert (done.stdout, done.stderr) == ("one\n", "")
    assert guest.kept == []
