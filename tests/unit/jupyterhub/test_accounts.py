"""Whose notebook runs under which account of the machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import pwd
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub import accounts
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
        return SimpleNamespace(pw_name=name, pw_uid=1001)

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
