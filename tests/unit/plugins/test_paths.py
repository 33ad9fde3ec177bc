# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that are looked at, made and removed: many of them, one call."""

from __future__ import annotations

import getpass
import grp
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.modules import path_info, paths

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(module: ModuleType, *wanted: str | dict[str, Any], check: bool = False) -> dict[str, Any]:
        arguments = {
            "paths": list(wanted),
            "_ansible_check_mode": check,
            "_ansible_remote_tmp": str(tmp_path),
        }
        capsys.readouterr()
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return call


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_tells_what_is_there_and_follows_no_link(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("four")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    names = ["file", "folder", "link", "link/", "dangling", "pipe", "nothing", "file/below"]
    found = run(path_info, *(f"{tmp_path}/{name}" for name in names))["found"]
    assert {Path(path).name: seen["kind"] for path, seen in found.items()} == {
        "file": "file",
        "folder": "folder",
        "link": "link",
        "dangling": "link",
        "pipe": "other",
    }
    assert f"{tmp_path}/link/" in found
    assert found[f"{tmp_path}/file"] == {
        "kind": "file",
        "mode": "0640",
        "owner": getpass.getuser(),
        "group": grp.getgrgid(os.getgid()).gr_name,
        "size": 4,
    }
    assert found[f"{tmp_path}/folder"]["mode"] == "0700"


def test_tells_the_number_of_an_account_without_a_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(path_info.pwd, "getpwuid", unknown)
    monkeypatch.setattr(path_info.grp, "getgrgid", unknown)
    seen = run(path_info, str(tmp_path))["found"][str(tmp_path)]
    assert (seen["owner"], seen["group"]) == (str(os.getuid()), str(tmp_path.stat().st_gid))


def test_answers_under_the_very_words_that_it_was_asked_with(run: Run, tmp_path: Path) -> None:
    (tmp_path / "$HOME").mkdir()
    assert list(run(path_info, f"{tmp_path}/$HOME")["found"]) == [f"{tmp_path}/$HOME"]


def test_says_what_cannot_be_looked_at(run: Run, tmp_path: Path) -> None:
    assert "cannot be looked at: File name too long" in run(path_info, f"{tmp_path}/{'x' * 300}")["msg"]


def test_makes_folders_once(run: Run, tmp_path: Path) -> None:
    top, below = tmp_path / "new" / "top", tmp_path / "new" / "top" / "below"
    request = [
        {"path": f"{top}/", "mode": "0750", "owner": str(os.getuid())},
        {"path": str(below), "mode": "0700", "owner": getpass.getuser()},
    ]
    told = run(paths, *request, check=True)
    assert told["changed_paths"] == [str(top), str(below)] and not top.parent.exists()
    assert [(diff["before"]["state"], diff["after"]["state"]) for diff in told["diff"]] == [
        ("absent", "directory")
    ] * 2
    assert run(paths, *request)["changed_paths"] == [str(top), str(below)]
    assert [mode(path) for path in (top.parent, top, below)] == [0o750, 0o750, 0o700]
    again = run(paths, *request)
    assert (again["changed"], again["changed_paths"], again["diff"]) == (False, [], [])


def test_corrects_permissions_and_follows_a_link_to_a_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("folder")
    request = {"path": f"{tmp_path}/link", "mode": "0700"}
    assert run(paths, request, check=True)["changed"] and mode(folder) == 0o755
    result = run(paths, request)
    assert (result["diff"][0]["before"]["mode"], result["diff"][0]["after"]["mode"]) == ("0755", "0700")
    assert mode(folder) == 0o700 and (tmp_path / "link").is_symlink()
    assert not run(paths, {"path": str(folder)})["changed"]


def test_shared_folders_go_with_the_last_file_in_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "of others").touch()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "file").touch()
    names = ["link", "file", "shared", "empty", "nothing"]
    request = [{"path": f"{tmp_path}/{name}", "state": "absent_if_empty"} for name in names]
    told = run(paths, *request, check=True)
    assert told["changed_paths"] == [f"{tmp_path}/empty"] and (tmp_path / "empty").is_dir()
    assert run(paths, *request)["changed_paths"] == [f"{tmp_path}/empty"]
    assert [name for name in names if os.path.lexists(tmp_path / name)] == ["link", "file", "shared"]
    both = [{"path": f"{tmp_path}/shared/of others", "state": "absent"}, request[2]]
    assert len(run(paths, *both)["changed_paths"]) == 2 and not (tmp_path / "shared").exists()
    assert not run(paths, *both)["changed"]


def test_removes_files_links_and_folders_and_nothing_through_a_link(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / "full" / "below").mkdir(parents=True)
    (tmp_path / "full" / "below" / "file").touch()
    (tmp_path / "full" / "link").symlink_to(kept)
    (tmp_path / "link").symlink_to(kept)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    names = ["full", "link/", "dangling", "file", "nothing"]
    request = [{"path": f"{tmp_path}/{name}", "state": "absent"} for name in names]
    gone = [f"{tmp_path}/{name}" for name in ["full", "link", "dangling", "file"]]
    told = run(paths, *request, check=True)
    assert told["changed_paths"] == gone and all(os.path.lexists(path) for path in gone)
    content = told["diff"][0]["before"]["path_content"]
    assert sorted(content["directories"]) == [f"{gone[0]}/below", f"{gone[0]}/link"]
    assert content["files"] == [f"{gone[0]}/below/file"]
    assert run(paths, *request)["changed_paths"] == gone
    assert [path.name for path in tmp_path.iterdir()] == ["kept"] and (kept / "file").exists()
    assert not run(paths, *request)["changed"]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"path": "{0}/file"}, "{0}/file cannot be a folder, as {0}/file is none; move it away"),
        ({"path": "{0}/file/below/it"}, "{0}/file/below/it cannot be a folder, as {0}/file is none"),
        ({"path": "{0}/dangling"}, "{0}/dangling cannot be a folder, as {0}/dangling is none"),
        ({"path": "{0}/new", "mode": "rwx"}, "The mode 'rwx' of {0}/new is no octal number"),
        ({"path": "{0}/new", "owner": "nobody-here"}, "{0}/new needs the owner nobody-here, which"),
        ({"path": "{0}/new", "group": "nobody-here"}, "{0}/new needs the group nobody-here, which"),
        ({"path": "new"}, "The path 'new' is not absolute"),
        ({"path": "", "state": "absent"}, "The path '' is not absolute"),
        ({"path": "//", "state": "absent"}, "The path / cannot be removed"),
    ],
)
def test_changes_nothing_where_one_entry_cannot_be_had(
    run: Run, tmp_path: Path, entry: dict[str, str], sentence: str
) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "dangling").symlink_to("nowhere")
    request = {**entry, "path": entry["path"].format(tmp_path)}
    result = run(
        paths, {"path": f"{tmp_path}/first"}, {"path": f"{tmp_path}/file", "state": "absent"}, request
    )
    assert result["failed"] and sentence.format(tmp_path) in result["msg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file"]


def test_an_account_may_come_before_the_run(run: Run, tmp_path: Path) -> None:
    told = run(paths, {"path": str(tmp_path), "owner": "nobody-here"}, check=True)
    assert told["changed_paths"] == [str(tmp_path)]


def test_says_what_cannot_be_made(run: Run) -> None:
    assert "/proc/nowhere cannot be made: " in run(paths, {"path": "/proc/nowhere"})["msg"]


def test_a_link_of_another_account_leads_nowhere(run: Run, tmp_path: Path) -> None:
    """Else who owns a folder would get any other one with the next run of root."""
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/link").symlink_to(tmp_path / "elsewhere")
    path = f"{tmp_path}/own/link"
    assert run(paths, {"path": path, "mode": "0755"})["changed"] is False
    (tmp_path / "own").chmod(0o777)
    for wanted in (path, f"{path}/below"):
        told = run(paths, {"path": wanted, "mode": "0700"})
        assert f"reached by the link {path}, which is in a folder of another account" in told["msg"]
    assert mode(tmp_path / "elsewhere") == 0o755
    assert not (tmp_path / "elsewhere/below").exists()
