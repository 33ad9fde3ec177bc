"""Accounts of the hub are closed to everything but notebooks; nobody else's is touched."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import pwd
import subprocess
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.people import closing

TODAY = 20781
UIDS = {"alice": 1001, "bob": 1002, "carol": 1003, "dora": 5000, "root": 0, "daemon": 1}
SHADOW = """root:*:20000:0:99999:7:::
alice:!:20000:0:99999:7::1:
bob:!:20000:0:99999:7:::
carol:!:20000:0:99999:7::20782:
mallory:!:20000:0:99999:7:::
broken
+::::::::
"""


@pytest.mark.parametrize("day", ["", "0", "-1", "soon", str(TODAY + 1)])
def test_days_on_which_an_account_is_open(day: str) -> None:
    assert closing.still_open(f"bob:!:1:0:9:7::{day}:", ["bob"], TODAY) == ["bob"]


def test_who_has_not_expired() -> None:
    names = ["alice", "bob", "carol", "dora", "broken"]
    assert closing.still_open(SHADOW, names, TODAY) == ["bob", "carol"]
    assert closing.still_open(SHADOW, names, TODAY + 1) == ["bob"]
    assert closing.still_open("", names, TODAY) == []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A machine of the accounts above, of which mallory is not the hub's; what is run on it."""
    commands: list[list[str]] = []
    slices = "".join(f"user-{uid}.slice loaded active active\n" for uid in (0, 1003, 1009, 10030))

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        if "list-units" not in command:
            commands.append(command)
        return SimpleNamespace(stdout=slices)

    def account(name: str) -> SimpleNamespace:
        return SimpleNamespace(pw_uid=UIDS[name])

    class Today(date):
        @classmethod
        def today(cls) -> date:
            return date(1970, 1, 1) + timedelta(days=TODAY)

    monkeypatch.setattr(closing, "date", Today)
    (tmp_path / "shadow").write_text(SHADOW)
    (tmp_path / "linger").mkdir()
    for name in ("alice", "mallory"):
        (tmp_path / "linger" / name).touch()
    monkeypatch.setattr(closing, "SHADOW", tmp_path / "shadow")
    monkeypatch.setattr(closing, "LINGER", tmp_path / "linger")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(pwd, "getpwnam", account)
    members = ["alice", "bob", "carol", "dora", "root", "daemon", "gone"]
    monkeypatch.setattr(grp, "getgrnam", lambda name: SimpleNamespace(gr_mem=members))
    return commands


def test_what_is_open_is_closed_and_nobody_elses(machine: list[list[str]], tmp_path: Path) -> None:
    assert closing.close(check=False) == ["alice", "bob", "carol"]
    assert machine == [
        ["/usr/sbin/usermod", "--expiredate", "1970-01-02", "--", "bob"],
        ["/usr/sbin/usermod", "--expiredate", "1970-01-02", "--", "carol"],
        ["systemctl", "stop", "user-1003.slice"],
    ]
    assert [path.name for path in (tmp_path / "linger").iterdir()] == ["mallory"]


def test_a_look_changes_nothing(machine: list[list[str]], tmp_path: Path) -> None:
    assert closing.close(check=True) == ["alice", "bob", "carol"]
    assert machine == [] and len(list((tmp_path / "linger").iterdir())) == 2


def test_a_machine_without_the_group(machine: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(grp, "getgrnam", nothing)
    assert closing.close(check=False) == [] and machine == []
