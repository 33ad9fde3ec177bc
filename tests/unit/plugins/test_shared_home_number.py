# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that share homes give an account the same number, and two accounts never the same."""

from __future__ import annotations

import multiprocessing
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.io import number as numbers
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.io.make import HomeError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="homes are made by root")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "home"
    path.mkdir(mode=0o755)
    return {"path": str(path), "create": True}


def test_a_number_is_given_once_and_for_ever(settings: dict[str, Any]) -> None:
    given = {name: numbers.number_of(name, "mark", settings) for name in ("ada", "bob", "carol")}
    assert len(set(given.values())) == 3
    assert all(10000 <= number < 60000 for number in given.values())
    assert {name: numbers.number_of(name, "mark", settings) for name in given} == given
    notes = Path(settings["path"], numbers.NOTES)
    assert notes.stat().st_mode & 0o777 == 0o755
    assert {path.name: str(path.readlink()) for path in notes.iterdir()} == {
        str(number): f"{name}:mark" for name, number in given.items()
    }


def test_the_owner_of_a_home_keeps_the_number(settings: dict[str, Any]) -> None:
    home = Path(settings["path"], "ada")
    home.mkdir()
    os.chown(home, 1001, 1001)
    assert numbers.number_of("ada", "mark", settings) == 1001
    assert str(Path(settings["path"], numbers.NOTES, "1001").readlink()) == "ada:mark"
    assert numbers.number_of("ada", "mark", {**settings, "create": False}) == 1001


def test_what_somebody_has_is_not_given(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the number of a home, nor of an account of this machine, nor one that is noted."""
    monkeypatch.setattr(numbers, "COUNT", 4)
    other = Path(settings["path"], "other")
    other.mkdir()
    os.chown(other, 10001, 10001)
    here = pwd.struct_passwd(("ops", "x", 10002, 10002, "", "/home/ops", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [here])
    assert {numbers.number_of(name, "mark", settings) for name in ("ada", "bob")} == {10000, 10003}
    with pytest.raises(HomeError, match="All numbers of users from 10000 to 10003 are taken"):
        numbers.number_of("carol", "mark", settings)


def claim(arguments: tuple[str, dict[str, Any]]) -> int:
    numbers.zlib.crc32 = lambda name: 0  # all begin at the same number
    name, settings = arguments
    return numbers.number_of(name, "mark", settings)


def test_machines_that_give_numbers_at_once(settings: dict[str, Any]) -> None:
    names = [f"user{number}" for number in range(40)]
    with multiprocessing.get_context("fork").Pool(8) as machines:
        given = machines.map(
            claim, [(name, settings) for name in names for _machine in range(2)], chunksize=1
        )
    assert given[::2] == given[1::2]
    assert len(set(given)) == len(names)


def account(name: str, uid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", "/bin/sh"))


def test_who_is_given_the_name_of_somebody_else_gets_neither_number_nor_home(
    settings: dict[str, Any],
) -> None:
    number = numbers.number_of("ada", "first", settings)
    numbers.check(account("ada", number), "first", settings)
    for refused in (
        lambda: numbers.number_of("ada", "second", settings),
        lambda: numbers.check(account("ada", number), "second", settings),
        lambda: numbers.check(account("ada", 1001), "first", settings),
        lambda: numbers.check(account("bob", number), "second", settings),
        lambda: numbers.write_down(account("bob", number), "second", settings),
    ):
        with pytest.raises(
            HomeError, match=f"{numbers.NOTES}/{number} says that the user id {number} belongs"
        ):
            refused()
    assert [note.name for note in Path(settings["path"], numbers.NOTES).iterdir()] == [str(number)]


def test_an_account_of_before_is_noted_with_its_home(settings: dict[str, Any]) -> None:
    ada = account("ada", 1001)
    numbers.check(ada, "mark", settings)
    numbers.write_down(ada, "mark", settings)
    numbers.write_down(ada, "mark", settings)
    assert numbers.number_of("ada", "mark", settings) == 1001
    nothing = {**settings, "create": False}
    numbers.write_down(account("bob", 1002), "mark", nothing)
    assert not Path(settings["path"], numbers.NOTES, "1002").is_symlink()


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("../ada", {}, "is no name of an account"),
        ("", {}, "is no name of an account"),
        ("ada", {"create": False}, "/home/ada is not there, and homes are not made here"),
        ("roots", {}, "/home/roots is no home of a user"),
        ("link", {}, "/home/link is no home of a user"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], name: str, changes: dict[str, Any], sentence: str) -> None:
    Path(settings["path"], "roots").mkdir()
    Path(settings["path"], "link").symlink_to("/etc")
    with pytest.raises(HomeError, match=sentence):
        numbers.number_of(name, "mark", {**settings, **changes})
    assert not Path(settings["path"], numbers.NOTES).exists()
