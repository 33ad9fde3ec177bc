"""A folder of the cache that is filled once, also by several at a time and by one that fails."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.system import fill_once


def writer(text: str):
    return lambda folder: (folder / "content").write_text(text)


def test_it_is_filled_once(tmp_path: Path):
    folder = tmp_path / "cache" / "thing"
    for text in ("first", "second"):
        fill_once(folder, writer(text))
    assert (folder / "content").read_text() == "first"
    assert [path.name for path in folder.parent.iterdir()] == ["thing"]


def test_the_first_of_two_at_a_time_wins(tmp_path: Path):
    folder = tmp_path / "thing"

    def late(scratch: Path) -> None:
        fill_once(folder, writer("first"))
        writer("late")(scratch)

    fill_once(folder, late)
    assert (folder / "content").read_text() == "first" and len([*tmp_path.iterdir()]) == 1


def test_a_failure_is_told_though_another_one_has_filled_it(tmp_path: Path):
    folder = tmp_path / "thing"

    def fails(scratch: Path) -> None:
        fill_once(folder, writer("first"))
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        fill_once(folder, fails)
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]
