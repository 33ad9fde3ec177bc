"""Notebooks run under the right accounts of the machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import pwd
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.people import accounts, homes
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("name", ["root", "daemon", "nobody"])
def test_accounts_of_the_machine_are_never_used(name: str) -> None:
    with pytest.raises(accounts.AccountError, match=f"{name} belongs to an account of this machine itself"):
        accounts.check_name(name)


@pytest.mark.parametrize(
    "name", ["", "Alice", "1alice", "-r", "a b", "a/b", "../x", "a" * 33, "ülrich", "a\n", "a:b"]
)
def test_names_that_cannot_be_accounts(name: str) -> None:
    with pytest.raises(accounts.AccountError, match="cannot be used on this machine"):
        accounts.check_name(name)


def test_an_account_that_other_machines_know_is_the_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(pw_name="ada", pw_uid=4242)
    known = {"ada": entry, "made-here": entry}
    monkeypatch.setattr(accounts, "_entry", known.get)
    monkeypatch.setattr(accounts, "_is_ours", lambda name: name == "made-here")
    accounts.check_shared("ada", 4242)
    for name, uid, words in (
        ("ada", 4243, "belongs to an account of this machine itself"),
        ("ada", None, "belongs to an account of this machine itself"),
        ("made-here", 4242, "has no account that all machines of this service know"),
        ("nobody-here", 4242, "has no account that all machines of this service know"),
    ):
        with pytest.raises(accounts.AccountError, match=words):
            accounts.check_shared(name, uid)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have accounts that other machines know, too, and one that the hub has made."""
    known = {
        name: pwd.struct_passwd((called, "x", uid, gid, "", "/home", "/bin/bash"))
        for name, called, uid, gid in (
            ("ada", "ada", 4242, 54321),
            ("ada-alias", "ada", 4242, 54321),
            ("made-here", "made-here", 4243, 54321),
            ("cloud", "cloud", 1000, grp.getgrnam("sudo").gr_gid),
            ("deploy", "deploy", 4244, grp.getgrnam("disk").gr_gid),
            ("toor", "toor", 0, 54321),
            ("backups", "backups", 34, 54321),
            ("nobody", "nobody", 65534, 54321),
            ("slurm", "slurm", 64030, 54321),
            ("first", "first", 60000, 54321),
            ("last", "last", 65533, 54321),
            ("grace", "grace", 59999, 54321),
            ("alan", "alan", 65536, 54321),
        )
    }
    monkeypatch.setattr(accounts, "_entry", known.get)
    monkeypatch.setattr(accounts, "_is_ours", lambda name: name == "made-here")


def test_an_account_of_a_person_is_found_by_its_name(shared: None) -> None:
    assert [accounts.uid_of_shared(name) for name in ("ada", "grace", "alan")] == [4242, 59999, 65536]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody-here", "nobody-here has no account that all machines of this service know"),
        ("ada-alias", "ada-alias has no account that all machines of this service know"),
        ("made-here", "made-here has no account that all machines of this service know"),
        ("ada.", "has no account"),
        ("ada-", "has no account"),
        ("toor", "toor is no account of a person on this machine"),
        ("backups", "backups is no account of a person on this machine"),
        ("nobody", "nobody is no account of a person on this machine"),
        ("slurm", "slurm is no account of a person on this machine"),
        ("first", "first is no account of a person on this machine"),
        ("last", "last is no account of a person on this machine"),
        ("cloud", r"cloud can administer this machine \(group sudo\), so a name from an identity"),
        ("deploy", r"deploy can administer this machine \(group disk\)"),
        *(
            (name, "cannot be used on this machine: it must start with a small letter")
            for name in (
                "Ada", "ADA", " ada", "ada ", "ada\n", "ada\0", "-ada", "--uid=0", "4242", "ada@example.org",
                "example\\ada", "../ada", "ada/", "\u0430da", "ad\u00aa", "", "a" * 33,
            )
        ),
    ],
)  # fmt: skip
def test_no_name_of_a_provider_selects_an_account_of_somebody_else(
    shared: None, name: str, words: str
) -> None:
    with pytest.raises(accounts.AccountError, match=words):
        accounts.uid_of_shared(name)


@given(st.text(max_size=40))
def test_what_passes_is_a_plain_name(name: str) -> None:
    try:
        accounts.check_name(name)
    except accounts.AccountError:
        return
    assert name.isascii() and name == name.lower() and not set(name) & set("/: \n\0")
    assert not name.startswith("-")


def test_an_account_is_made_once_and_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    known: set[str] = set()
    commands: list[list[str]] = []

    def getpwnam(name: str) -> SimpleNamespace:
        if name not in known:
            raise KeyError(name)
        return SimpleNamespace(pw_name=name, pw_uid=1001, pw_dir="/nonexistent")

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        commands.append(command)
        known.add(command[-1])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(pwd, "getpwnam", getpwnam)
    monkeypatch.setattr(grp, "getgrnam", lambda name: SimpleNamespace(gr_mem=sorted(known)))
    monkeypatch.setattr(subprocess, "run", run)
    accounts.ensure("alice")
    accounts.ensure("alice")
    assert len(commands) == 1
    assert commands[0][-2:] == ["--", "alice"]
    assert "/usr/sbin/nologin" in commands[0] and "HOME_MODE=0700" in commands[0]
    assert commands[0][commands[0].index("--expiredate") + 1] == "1970-01-02"


def test_an_account_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SimpleNamespace(returncode=12, stderr="useradd: cannot create directory /home/zoe\n")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: answer)
    with pytest.raises(accounts.AccountError, match="The account zoe could not be made on this machine"):
        accounts.ensure("zoe")


@pytest.mark.parametrize("name", ["root", "daemon", "nobody", "no-such-account"])
def test_who_is_no_person(name: str) -> None:
    with pytest.raises(accounts.AccountError, match=f"{name} is no account of a person"):
        accounts.uid_of_person(name)


def test_where_persons_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "LOGIN_DEFS", tmp_path / "login.defs")
    assert [accounts.is_person(uid) for uid in (0, 999, 1000, 65534, 70000)] == [
        False,
        False,
        True,
        False,
        True,
    ]
    (tmp_path / "login.defs").write_text("# UID_MIN 1\nUID_MIN\t\t 5000\n")
    assert [accounts.is_person(uid) for uid in (1000, 4999, 5000)] == [False, False, True]


def test_groups_of_an_account() -> None:
    assert "root" in accounts.groups_of("root")
    with pytest.raises(accounts.AccountError, match="no-such-account is gone"):
        accounts.groups_of("no-such-account")


def test_a_name_that_was_given_to_somebody_else_does_not_inherit_the_files(tmp_path: Path) -> None:
    persons = accounts.Persons(tmp_path / "persons.json")
    persons.bind("alice", "https://iam.example.org/", "subject-1")
    persons.bind("alice", "https://iam.example.org/", "subject-1")
    persons.bind("bob", "https://iam.example.org/", "subject-2")
    with pytest.raises(accounts.AccountError, match="alice belongs to another person"):
        persons.bind("alice", "https://iam.example.org/", "subject-2")
    with pytest.raises(accounts.AccountError, match="alice belongs to another person"):
        persons.bind("alice", "https://other.example.org/", "subject-1")


def test_names_that_were_written_beforehand_are_of_these_persons(tmp_path: Path) -> None:
    manual = (Path(__file__).parents[3] / "roles/jupyterhub/README.md").read_text()
    example = re.search(r'`(\{"alice": \{"issuer".*?\}\})`', manual)
    assert example
    (tmp_path / "persons.json").write_text(example[1])
    persons = accounts.Persons(tmp_path / "persons.json")
    with pytest.raises(accounts.AccountError, match="alice belongs to another person"):
        persons.bind("alice", "https://iam.example.org/", "somebody", only=True)
    persons.bind("alice", "https://iam.example.org/", "SUB", only=True)


def test_a_person_has_one_name_where_names_select_accounts(tmp_path: Path) -> None:
    persons = accounts.Persons(tmp_path / "persons.json")
    persons.bind("mallory", "https://iam.example.org/", "subject-1", only=True)
    with pytest.raises(accounts.AccountError, match="calls you alice now, and your account here is mallory"):
        persons.bind("alice", "https://iam.example.org/", "subject-1", only=True)
    persons.bind("alice", "https://iam.example.org/", "subject-2", only=True)
    persons.bind("mallory", "https://iam.example.org/", "subject-1", only=True)
    persons.bind("bob", "https://other.example.org/", "subject-1", only=True)
    # The hub makes an account for each name, so the second one has nothing of anybody.
    persons.bind("second", "https://iam.example.org/", "subject-1")


def test_what_stands_for_a_person_is_alike_on_all_machines(tmp_path: Path) -> None:
    here, there = (accounts.Persons(tmp_path / name) for name in ("here", "there"))
    for persons in (here, there):
        persons.bind("alice", "https://iam.example.org/", "subject-1")
    there.bind("bob", "https://iam.example.org/", "subject-2")
    assert here.mark("alice") == there.mark("alice") != there.mark("bob")
    assert here.mark("bob") == ""
    assert "subject" not in here.mark("alice")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Stub of the command of the role shared_home; alice has an account."""
    command = tmp_path / "gpufarm-home"
    command.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\n')
    command.chmod(0o755)
    monkeypatch.setattr(homes, "COMMAND", command)
    monkeypatch.setattr(accounts, "_entry", lambda name: SimpleNamespace(pw_uid=1001, pw_dir="/nonexistent"))
    monkeypatch.setattr(accounts, "_is_ours", lambda name: True)
    return command


def test_the_home_is_asked_for_at_each_start(kept: Path) -> None:
    accounts.ensure("alice")
    accounts.ensure("alice")
    assert (kept.parent / "called").read_text() == "alice --person=\nalice --person=\n"


def test_an_account_whose_home_is_kept_elsewhere_gets_none_of_useradd(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(returncode=0, stdout="54321\n")

    monkeypatch.setattr(accounts, "_entry", lambda name: None)
    monkeypatch.setattr(subprocess, "run", run)
    accounts.ensure("alice", person="mark")
    assert commands[0] == [kept, "--number=alice", "--person=mark"]
    assert "--no-create-home" in commands[1] and "--create-home" not in commands[1]
    assert commands[1][commands[1].index("--uid") + 1] == "54321"
    assert commands[2] == [kept, "alice", "--person=mark"]
    accounts.ensure("bob", 20002, "mark")  # the number that a directory has for him
    assert commands[3][commands[3].index("--uid") + 1] == "20002"
    assert commands[4] == [kept, "bob", "--person=mark"]


def test_a_number_that_somebody_else_has_here_is_not_taken(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_entry", lambda name: None)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=f"ops{uid}"))
    with pytest.raises(accounts.AccountError, match=r"has the user id 20002 .* that is the account ops20002"):
        accounts.ensure("bob", 20002)
    assert not (kept.parent / "called").exists()


def test_why_a_home_cannot_be_used_is_told(kept: Path) -> None:
    kept.write_text("#!/bin/sh\necho /shared/home is not mounted.\nexit 1\n")
    with pytest.raises(
        accounts.AccountError, match=r"^Your home cannot be used: /shared/home is not mounted\.$"
    ):
        accounts.ensure("alice")
    kept.chmod(0o644)
    with pytest.raises(accounts.AccountError, match="Your home could not be looked for"):
        accounts.ensure("alice")


def test_without_the_role_shared_home_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(homes, "COMMAND", tmp_path / "gpufarm-home")
    homes.ensure("alice", "")
