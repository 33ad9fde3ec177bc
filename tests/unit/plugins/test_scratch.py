"""Areas for data of passing value: theirs alone, told before they go, and no link leads out of them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.module_utils._scratch.io import areas, command
from ansible_collections.gpufarm.cluster.plugins.module_utils._scratch.io.ageing import DAY, ageing
from ansible_collections.gpufarm.cluster.plugins.module_utils._scratch.plan import plan

SETTINGS = {"path": "/scratch", "days": 30, "remove": True, "warning_days": 7, "quota": "", "quota_files": 0}
MOUNTS = "21 1 8:2 / / rw - ext4 /dev/sda2 rw\n22 21 8:3 / /scratch rw - {kind} /dev/sdb1 rw\n"
ME = pwd.getpwuid(os.getuid())


def account(name: str) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", ME.pw_uid, ME.pw_gid, "", "/", "/bin/sh"))


def test_files_are_removed_only_where_the_file_system_is_mounted() -> None:
    planned = plan(SETTINGS, MOUNTS.format(kind="xfs"))
    assert planned["tmpfiles"].splitlines()[1:] == [
        "e /scratch/users/* - - - 30d",
        "e /scratch/jobs - - - 30d",
    ]
    assert planned["way"] == ["/scratch", "/scratch/."] and planned["packages"] == []
    assert plan({**SETTINGS, "path": "/scratch/a/b"}, MOUNTS.format(kind="xfs"))["way"] == [
        "/scratch", "/scratch/a", "/scratch/a/b", "/scratch/a/b/.",
    ]  # fmt: skip


def test_a_folder_that_is_looked_at_twice_is_named_once() -> None:
    seen = {"kind": "folder", "owner": "root", "mode": "1777"}
    planned = plan(SETTINGS, MOUNTS.format(kind="xfs"), {"/scratch": seen, "/scratch/.": seen})
    assert len(planned["problems"]) == 1 and planned["problems"][0].startswith("/scratch can be changed")


def test_a_machine_that_removes_nothing_has_no_rules() -> None:
    for other in ({"days": 0, "warning_days": 0}, {"remove": False}):
        assert plan({**SETTINGS, **other}, MOUNTS.format(kind="xfs"))["tmpfiles"] == ""


def test_settings_are_checked_before_the_file_system_is_mounted() -> None:
    assert plan(SETTINGS) == {"problems": [], "way": ["/scratch", "/scratch/."]}
    assert "is no plain absolute path" in plan({**SETTINGS, "path": "scratch"})["problems"][0]


@pytest.mark.parametrize(
    ("kind", "packages", "by_lustre"),
    [("ext4", ["quota"], False), ("xfs", ["quota"], False), ("lustre", [], True)],
)
def test_a_quota_is_set_as_the_file_system_wants_it(kind: str, packages: list[str], by_lustre: bool) -> None:
    planned = plan({**SETTINGS, "quota": "1T"}, MOUNTS.format(kind=kind))
    assert planned["packages"] == packages
    assert planned["command"]["by_lustre"] is by_lustre and planned["command"]["quota"] == 2**40


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A mounted folder for areas, and the settings of the command."""
    for name in ("users", "jobs", "warnings"):
        (tmp_path / name).mkdir()
    settings = {
        "path": str(tmp_path),
        "days": 30,
        "warning_days": 7,
        "reading_counts": True,
        "limits": False,
        "quota": 0,
        "quota_files": 0,
        "user_quotas": {},
        "by_lustre": False,
    }
    monkeypatch.setattr(areas, "mount_point", lambda path: path)
    monkeypatch.setattr(command, "SETTINGS", tmp_path / "settings.json")
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    monkeypatch.setenv(command.INSIDE, "yes")
    monkeypatch.setenv("PATH", os.environ["PATH"])  # the command gives itself one
    return settings


def test_an_area_is_its_users_alone_and_stays_as_it_is(place: dict[str, Any]) -> None:
    area = areas.of_user(place, account("ada"))
    assert area == Path(place["path"], "users", "ada") and area.stat().st_mode & 0o7777 == 0o700
    (area / "file").write_text("data")
    area.chmod(0o750)
    assert areas.of_user(place, account("ada")) == area
    assert (area / "file").read_text() == "data" and area.stat().st_mode & 0o7777 == 0o750


@pytest.mark.parametrize("name", [".", "..", ""])
def test_a_name_that_leads_elsewhere_is_refused(place: dict[str, Any], name: str) -> None:
    before = Path(place["path"]).stat()
    with pytest.raises(areas.ScratchError, match="is no place for an area"):
        areas.of_user(place, account(name))
    assert Path(place["path"]).stat().st_mode == before.st_mode


def test_a_name_with_a_slash_makes_nothing_outside(place: dict[str, Any]) -> None:
    with pytest.raises(areas.ScratchError):
        areas.of_user(place, account("../../evil"))
    assert not (Path(place["path"]).parent / "evil").exists()


def test_a_link_or_a_file_in_place_of_an_area_is_refused(place: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "users" / "ada").symlink_to("/etc")
    (tmp_path / "users" / "ben").write_text("")
    for name in ("ada", "ben"):
        with pytest.raises(areas.ScratchError, match="belongs to somebody else"):
            areas.of_user(place, account(name))


def test_the_area_of_a_job_goes_and_what_its_links_lead_to_stays(
    place: dict[str, Any], tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("data")
    area = areas.of_job(place, "farm-7", ME)
    (area / "deep").mkdir()
    (area / "deep" / "link").symlink_to(precious)
    (area / "hard").hardlink_to(precious / "file")
    areas.put_aside(place, "farm-7", ME.pw_uid)
    areas.put_aside(place, "farm-7", ME.pw_uid)
    again = areas.of_job(place, "farm-7", ME)
    (again / "of the second run").touch()
    areas.remove(place)
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["farm-7"] and [*again.iterdir()]
    assert (precious / "file").read_text() == "data"


def test_the_area_of_somebody_else_stays(place: dict[str, Any]) -> None:
    area = areas.of_job(place, "farm-7", ME)
    areas.put_aside(place, "farm-7", ME.pw_uid + 1)
    areas.remove(place)
    assert area.is_dir()


def test_folders_of_any_depth_go(place: dict[str, Any], tmp_path: Path) -> None:
    area = areas.of_job(place, "farm-7", ME)
    make = "import os\nfor _ in range(3000):\n os.mkdir('d'); os.chdir('d')\nopen('f', 'w')"
    subprocess.run([sys.executable, "-c", make], check=True, cwd=area)
    assert [one.size for one in ageing(area, 0, 0, area.stat().st_ctime + DAY)] == [0]
    areas.put_aside(place, "farm-7", ME.pw_uid)
    areas.remove(place)
    assert not [*(tmp_path / "jobs").iterdir()]


def test_a_quota_is_set_with_the_area(place: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(words: list[str], _seconds: float) -> timed.Answer:
        ran.append(words)
        return timed.Answer(len(ran) - 1, "", "no quota here")

    monkeypatch.setattr(areas.timed, "run", run)
    limited = {**place, "limits": True, "quota": 2**30, "quota_files": 5}
    areas.of_user(limited, account("ada"))
    assert ran == [["setquota", "--user", str(ME.pw_uid), "0", str(2**20), "0", "5", place["path"]]]
    with pytest.raises(areas.ScratchError, match=r"the quota of ada on .* cannot be set: no quota here"):
        areas.of_user(limited, account("ada"))


@pytest.mark.parametrize("size", [2**30, 0])
def test_quotas_of_all_areas_are_set_anew(
    place: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    size: int,
) -> None:
    for name in ("ada", "ben"):
        areas.of_user(place, account(name))
    ran: list[list[str]] = []

    def run(words: list[str], _seconds: float) -> timed.Answer:
        ran.append(words)
        return timed.Answer(len(ran) // 3, "", "no quota here")

    monkeypatch.setattr(areas.timed, "run", run)
    (tmp_path / "settings.json").write_text(json.dumps({**place, "limits": size > 0, "quota": size}))
    assert command.main(["limit"]) == 0
    assert ran == 2 * [
        ["setquota", "--user", str(ME.pw_uid), "0", str(size // 1024), "0", "0", place["path"]]
    ]
    assert command.main(["limit"]) == 1
    assert "the quota of ada on" in capsys.readouterr().out


def old(path: Path, days: float) -> None:
    """Make a file old; the kernel sets the time of a change itself, so `now` is later by as much in tests."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("12345")
    now = path.stat().st_ctime
    os.utime(path, (now - days * DAY, now - days * DAY))


def test_files_that_nobody_used_are_told_with_the_days_that_are_left(tmp_path: Path) -> None:
    old(tmp_path / "deep" / "file", 0)
    now = (tmp_path / "deep" / "file").stat().st_ctime + 25 * DAY
    old(tmp_path / "read", 0)
    os.utime(tmp_path / "read", (now - DAY, now - 20 * DAY))
    (tmp_path / "link").symlink_to("/etc")
    found = {one.path: one for one in ageing(tmp_path, 30, 7, now)}
    assert {*found} == {"deep/file", "link"}
    assert found["deep/file"].size == 5 and found["deep/file"].days == pytest.approx(5, abs=0.01)
    assert not list(ageing(tmp_path, 30, 4, now))
    assert [one.days for one in ageing(tmp_path, 20, 0, now) if one.path == "deep/file"] == [0.0]


def test_an_area_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "area").symlink_to("/etc")
    assert not list(ageing(tmp_path / "area", 0, 0, 1e11))


def test_a_user_who_cannot_be_warned_does_not_keep_others_from_it(
    place: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("ada", "ben"):
        old(areas.of_user(place, account(name)) / "file", 0)
    (tmp_path / "warnings" / ".ada.new").mkdir()
    monkeypatch.setattr(command.time, "time", lambda: tmp_path.stat().st_ctime + 25 * DAY)
    assert command.main(["warn"]) == 1
    assert "some users were not warned: ada" in capsys.readouterr().out
    assert (tmp_path / "warnings" / "ben").exists()


def test_a_shell_tells_what_goes_unless_nobody_looks_any_more(
    place: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "warnings" / ME.pw_name
    note.write_text("3 files with 1.0 GB\n")
    assert command.main(["notice"]) == 0
    assert "3 files with 1.0 GB in" in capsys.readouterr().out
    os.utime(note, (0, 0))
    assert command.main(["notice"]) == 0 and not capsys.readouterr().out


@pytest.mark.parametrize(("reading", "word"), [(True, "last used"), (False, "last changed")])
def test_a_user_learns_what_counts(
    place: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], reading: bool, word: str
) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({**place, "reading_counts": reading}))
    assert command.main([]) == 0
    assert f"files stay for 30 days after they were {word}" in capsys.readouterr().out


def test_a_warning_is_for_its_user_and_goes_with_its_reason(
    place: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    area = areas.of_user(place, account("ada"))
    old(area / "file", 0)
    later = (area / "file").stat().st_ctime + 25 * DAY
    monkeypatch.setattr(command.time, "time", lambda: later)
    assert command.main(["warn"]) == 0
    note = tmp_path / "warnings" / "ada"
    assert note.read_text() == "1 files with 0.0 GB\n" and note.stat().st_mode & 0o777 == 0o400
    (area / "file").unlink()
    assert command.main(["warn"]) == 0
    assert not note.exists()


def test_a_name_cannot_steer_the_terminal(
    place: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    area = areas.of_user(place, ME)
    old(area / "a\x1b[2Jb\n", 0)
    monkeypatch.setattr(command.time, "time", lambda: area.stat().st_ctime + 28 * DAY)
    assert command.main(["ageing"]) == 0
    assert capsys.readouterr().out == f"  2.0 days  {area}/a\\x1b[2Jb\\n\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["begin", "farm-7", "4294967290"], "no account with the number 4294967290"),
        (["login"], "there is no account"),
    ],
)
def test_somebody_who_is_unknown_gets_nothing(
    place: dict[str, Any], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(words) == 1
    assert said in capsys.readouterr().out and not [*Path(place["path"], "users").iterdir()]


def test_a_job_gets_both_areas_and_loses_its_own(place: dict[str, Any], tmp_path: Path) -> None:
    assert command.main(["begin", "farm-7", str(ME.pw_uid)]) == 0
    assert (tmp_path / "users" / ME.pw_name).is_dir() and (tmp_path / "jobs" / "farm-7").is_dir()
    assert command.main(["end", "farm-7", str(ME.pw_uid)]) == 0 and command.main(["remove"]) == 0
    assert (tmp_path / "users" / ME.pw_name).is_dir() and not [*(tmp_path / "jobs").iterdir()]


@pytest.mark.parametrize(
    "words",
    [
        ["begin", "../7", "0"],
        ["end", "farm-7/../..", "0"],
        ["end", "", "0"],
        ["end", "-7", "0"],
        ["end", "farm-7"],
    ],
)
def test_a_job_has_the_name_of_its_cluster_and_a_number(place: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(words)


def test_a_file_system_that_is_away_is_told(
    place: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(path: str) -> str:
        raise areas.ScratchError(f"{path} is not mounted")

    monkeypatch.setattr(areas, "mount_point", away)
    for words in (["begin", "farm-7", str(ME.pw_uid)], ["end", "farm-7", "0"], ["check"]):
        assert command.main(words) == 1
        assert "is not mounted." in capsys.readouterr().out
    assert not [*Path(place["path"], "jobs").iterdir()]


def test_a_file_system_that_hangs_does_not_hold_a_login(
    place: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run_late: Callable[..., Any],
) -> None:
    monkeypatch.delenv(command.INSIDE)
    monkeypatch.setattr(command.timed, "run", run_late)
    assert command.main(["login"]) == 1
    assert "does not answer" in capsys.readouterr().out


@pytest.fixture
def run_late() -> Callable[..., Any]:
    return lambda *_arguments: timed.Answer(None, "", "")
