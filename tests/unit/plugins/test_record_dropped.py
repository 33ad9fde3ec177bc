"""Files that a role made earlier and makes no longer are removed, and nothing else is."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.dropped import Dropped, dropped
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io import remove, things
from hypothesis import given
from hypothesis import strategies as st

FILE = "-rw-r--r-- 0:0 5f"
UNIT = "/etc/systemd/system/old.service"


def test_a_file_that_is_made_no_longer_is_found() -> None:
    before = {"paths": {"/etc/old": FILE, "/etc/new": FILE, "/opt/link": "lrwxrwxrwx 0:0 /x"}}
    assert dropped(before, {"paths": ["/etc/new"]}, []).files == {
        "/etc/old": FILE,
        "/opt/link": "lrwxrwxrwx 0:0 /x",
    }


@pytest.mark.parametrize(
    ("state", "now", "others"),
    [
        (FILE, {"paths": ["/etc/web/old"]}, []),
        (FILE, {"paths": ["/etc/web"]}, []),
        (FILE, {"reads": ["/etc/web"]}, []),
        (FILE, {}, [{"paths": ["/etc/web/old"]}]),
        (FILE, {}, [{"units": ["a.service"]}, {"reads": ["/etc/web/old"]}]),
        ("drwxr-xr-x 0:0 5f", {}, []),
        ("absent", {}, []),
        ("cannot be read: Input/output error", {}, []),
    ],
)
def test_what_is_made_by_somebody_or_is_no_file_stays(
    state: str, now: dict[str, list[str]], others: list[dict[str, list[str]]]
) -> None:
    assert dropped({"paths": {"/etc/web/old": state}}, now, others) == Dropped()


def test_neighbours_with_a_longer_name_protect_nothing() -> None:
    assert dropped({"paths": {"/etc/web-old": FILE}}, {"paths": ["/etc/web"]}, []).files


def test_a_unit_stops_only_if_its_own_file_goes() -> None:
    before = {"paths": {UNIT: FILE}, "units": {"old.service": "enabled, active", "docker.service": "enabled"}}
    assert dropped(before, {}, []).units == ("old.service",)
    assert dropped(before, {"units": ["old.service"]}, []).units == ()
    assert dropped({"units": {"old.service": "enabled"}}, {}, []) == Dropped()


def test_mounts_are_left_to_their_role() -> None:
    before = {"paths": {"/etc/systemd/system/srv-home.mount": FILE}, "units": {"srv-home.mount": "enabled"}}
    assert dropped(before, {}, []) == Dropped()


names = st.lists(st.sampled_from(["/a", "/a/b", "/a/b/c", "/ab", "/d"]), unique=True)


@given(names, names, names)
def test_nothing_that_somebody_makes_is_removed(before: list[str], now: list[str], other: list[str]) -> None:
    found = dropped({"paths": dict.fromkeys(before, FILE)}, {"paths": now}, [{"paths": other}])
    made = {Path(path) for path in (*now, *other)}
    for path in found.files:
        assert path in before
        assert not made & {Path(path), *Path(path).parents}


@pytest.fixture
def old(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "old").write_text("ours")
    (tmp_path / "link").symlink_to("/etc/passwd")
    paths = [str(tmp_path / name) for name in ("old", "link")]
    return things.states({"paths": paths})["paths"]


def test_unchanged_files_go(old: dict[str, str]) -> None:
    assert remove.remove(Dropped(old)) == (sorted(old), [])
    assert Path("/etc/passwd").exists()
    assert remove.remove(Dropped(old)) == ([], [])


def test_a_file_that_somebody_changed_stays(old: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "old").write_text("theirs")
    gone, kept = remove.remove(Dropped(old))
    assert gone == [str(tmp_path / "link")]
    assert kept == [f"{tmp_path / 'old'} is no longer made, and stays, as somebody has changed it."]


def test_a_unit_is_stopped_before_its_file_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = tmp_path / "old.service"
    unit.write_text("[Unit]\n")
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(remove, "UNITS", f"{tmp_path}/")
    monkeypatch.setattr(remove, "_systemctl", lambda *words: told.append((*words, str(unit.exists()))))
    files = things.states({"paths": [str(unit)]})["paths"]
    assert remove.remove(Dropped(files, ("old.service",))) == ([str(unit)], [])
    assert told == [("disable", "--now", "old.service", "True"), ("daemon-reload", "False")]


def test_a_reload_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = tmp_path / "old.service"
    unit.write_text("[Unit]\n")
    monkeypatch.setattr(remove, "UNITS", f"{tmp_path}/")

    def broken(*words: str) -> None:
        raise subprocess.CalledProcessError(1, words)

    monkeypatch.setattr(remove, "_systemctl", broken)
    gone, kept = remove.remove(Dropped(things.states({"paths": [str(unit)]})["paths"]))
    assert gone == [str(unit)]
    assert "does not reload" in kept[0]


def test_a_unit_that_does_not_stop_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = tmp_path / "old.service"
    unit.write_text("[Unit]\n")
    monkeypatch.setattr(remove, "UNITS", f"{tmp_path}/")

    def busy(*_words: str) -> None:
        raise OSError("busy")

    monkeypatch.setattr(remove, "_systemctl", busy)
    files = things.states({"paths": [str(unit)]})["paths"]
    gone, kept = remove.remove(Dropped(files, ("old.service",)))
    assert (gone, unit.exists()) == ([], True)
    assert kept == [f"{unit} is no longer made, and cannot be removed: busy."]
