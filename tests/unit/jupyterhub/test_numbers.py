"""Numbers of accounts outlive a machine, and nobody gets the files of somebody else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import json
import pwd
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.people import accounts, homes, numbers
from gpufarm_hub.people.numbers import Numbers


class Machine:
    """A machine's accounts and groups, and the folder of its homes; useradd as shadow-utils has it."""

    def __init__(self, folder: Path) -> None:
        self.users: dict[str, int] = {"root": 0}
        self.groups: dict[str, int] = {"root": 0, accounts.GROUP: 990}
        self.made: list[str] = []
        self.owners: dict[Path, int] = {}
        self.folder = folder

    def run(self, command: list[str], **_options: Any) -> SimpleNamespace:
        program, name = Path(command[0]).name, command[-1]
        if program == "groupadd":
            self.groups[name] = int(command[command.index("--gid") + 1])
            return SimpleNamespace(returncode=0)
        assert program == "useradd"
        number = int(command[command.index("--uid") + 1]) if "--uid" in command else self.next()
        if number in self.users.values():
            return SimpleNamespace(returncode=4, stderr=f"useradd: UID {number} is not unique")
        self.users[name] = number
        if "--user-group" in command:
            self.groups[name] = number
        self.made.append(name)
        home = self.folder / name
        if "--create-home" in command and not home.exists():
            self.home(name, number)
        return SimpleNamespace(returncode=0)

    def next(self) -> int:
        return max(999, *self.users.values()) + 1

    def home(self, name: str, number: int) -> Path:
        home = self.folder / name
        home.mkdir()
        self.owners[home] = number
        return home


def entry(folder: Path, found: tuple[str, int] | None) -> pwd.struct_passwd:
    if not found:
        raise KeyError
    return pwd.struct_passwd((found[0], "x", found[1], found[1], "", str(folder / found[0]), ""))


def group(found: tuple[str, int] | None, members: list[str]) -> grp.struct_group:
    if not found:
        raise KeyError
    return grp.struct_group((found[0], "x", found[1], members))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    users, groups = made.users, made.groups

    def by(name: str, table: dict[str, int]) -> tuple[str, int] | None:
        return (name, table[name]) if name in table else None

    def of(number: int, table: dict[str, int]) -> tuple[str, int] | None:
        return next(((name, each) for name, each in table.items() if each == number), None)

    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry(tmp_path, by(name, users)))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: entry(tmp_path, of(number, users)))
    monkeypatch.setattr(pwd, "getpwall", lambda: [entry(tmp_path, each) for each in users.items()])
    monkeypatch.setattr(grp, "getgrnam", lambda name: group(by(name, groups), made.made))
    monkeypatch.setattr(grp, "getgrgid", lambda number: group(of(number, groups), []))
    monkeypatch.setattr(subprocess, "run", made.run)
    monkeypatch.setattr(homes, "HOMES", tmp_path)
    monkeypatch.setattr(homes, "COMMAND", tmp_path / "none" / "gpufarm-home")
    real = Path.stat

    def stat(self: Path, **options: Any) -> Any:
        found = real(self, **options)
        return SimpleNamespace(st_uid=made.owners[self]) if self in made.owners else found

    monkeypatch.setattr(Path, "stat", stat)
    return made


def test_everybody_has_the_numbers_from_before(machine: Machine) -> None:
    for name in ("bob", "alice"):
        accounts.ensure(name)
    machine.groups["alice"] = 1044  # another one had the number of her account
    saved = numbers.dump()
    assert numbers.load(saved) == {"alice": Numbers(1001, 1044), "bob": Numbers(1000, 1000)}
    for table in (machine.users, machine.groups, machine.made):
        for name in ("alice", "bob"):
            table.pop(name) if isinstance(table, dict) else table.remove(name)
    machine.users["carol"], machine.groups["carol"] = 1002, 1002
    assert numbers.conflicts(numbers.load(saved)) == []
    numbers.restore(numbers.load(saved))
    assert machine.users == {"root": 0, "bob": 1000, "alice": 1001, "carol": 1002}
    assert (machine.groups["alice"], machine.groups["bob"]) == (1044, 1000)
    assert numbers.dump() == saved
    numbers.restore(numbers.load(saved))  # as after an interruption
    for name in ("bob", "alice"):
        accounts.ensure(name)
    assert numbers.dump() == saved


def test_numbers_of_somebody_else_are_told_with_both_names(machine: Machine) -> None:
    machine.users |= {"carol": 1000, "alice": 1007}
    machine.groups |= {"staff": 1001, "dora": 1002}
    wanted = {"bob": Numbers(1000, 1000), "alice": Numbers(1001, 1001), "dora": Numbers(1002, 1002)}
    assert numbers.conflicts(wanted) == [
        "The user bob had the number 1000, which is that of the user carol here.",
        "The user alice had the number 1001 and has 1007 here.",
        "The group alice had the number 1001, which is that of the group staff here.",
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"alice": {"uid": 0, "gid": 1000}}',
        b'{"alice": {"uid": 1000, "gid": 27}}',
        b'{"alice": {"uid": "1000", "gid": 1000}}',
        b'{"alice": {"uid": true, "gid": 1000}}',
        b'{"alice": {"uid": 1000}}',
        b'{"alice": 1000}',
        b'{"-o": {"uid": 1000, "gid": 1000}}',
        b'{"alice:0": {"uid": 1000, "gid": 1000}}',
    ],
)
def test_what_are_no_numbers_of_persons(content: bytes) -> None:
    with pytest.raises(ValueError):
        numbers.load(content)


def test_a_home_of_somebody_else_is_refused_and_stays_as_it_is(machine: Machine) -> None:
    accounts.ensure("carol")
    accounts.ensure("alice")
    machine.owners[machine.folder / "alice"] = machine.users["carol"]
    with pytest.raises(
        accounts.AccountError,
        match=r"^Your home \S+/alice belongs to the account carol \(number 1000\), and your account here has "
        r"the number 1001\. Ask the administrator .* to restore the accounts from a backup",
    ):
        accounts.ensure("alice")
    machine.owners[machine.folder / "alice"] = 4711
    with pytest.raises(accounts.AccountError, match="the number 4711, which no account has here"):
        accounts.ensure("alice")
    assert machine.owners[machine.folder / "alice"] == 4711
    accounts.ensure("carol")


def test_a_home_without_an_account_waits_and_gets_none_by_chance(machine: Machine) -> None:
    machine.home("alice", 1000)
    with pytest.raises(accounts.AccountError, match=r"There is a home \S+/alice .* but no account alice"):
        accounts.ensure("alice")
    assert "alice" not in machine.users


def test_who_comes_first_gets_no_number_of_a_home_that_waits(machine: Machine) -> None:
    machine.home("alice", 1000)
    machine.home("bob", 1003)
    machine.home("lost+found", 0)
    accounts.ensure("mallory")
    assert machine.users["mallory"] == 1004
    numbers.restore({"alice": Numbers(1000, 1000), "bob": Numbers(1003, 1003)})
    accounts.ensure("alice")
    accounts.ensure("bob")


def test_two_who_come_at_once_get_two_numbers(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.home("alice", 1000)
    monkeypatch.setattr(pwd, "getpwall", lambda: [])  # as before the other one was there
    accounts.ensure("carol")
    accounts.ensure("dora")
    assert (machine.users["carol"], machine.users["dora"]) == (1001, 1002)


def test_where_no_home_waits_useradd_chooses(machine: Machine) -> None:
    accounts.ensure("alice")
    machine.users["directory"] = 70000
    accounts.ensure("bob")
    assert machine.users["bob"] == 70001  # as the fake does


def test_homes_that_hang_are_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts.ensure("alice")
    monkeypatch.setattr(homes, "TIMEOUT", 0.05)
    hangs = threading.Event()
    answers = Path.stat

    def stat(self: Path, **options: Any) -> Any:
        return hangs.wait(60) if self.name == "alice" else answers(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    try:
        with pytest.raises(accounts.AccountError, match=r"The file system of \S+/alice does not answer"):
            accounts.ensure("alice")
    finally:
        hangs.set()


def test_a_group_that_cannot_be_made_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=10, stderr="groupadd: cannot open /etc/group\n")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: failed)
    with pytest.raises(accounts.AccountError, match=r"The group alice could not be made: .*/etc/group$"):
        numbers.restore({"alice": Numbers(1000, 1000)})
    assert json.loads(numbers.dump()) == {}
