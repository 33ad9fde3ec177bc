"""The module text_files: many files, one call."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.modules import text_files

FILES = {"a.py": "one\n", "b.py": "zwei ü\n"}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        arguments = {
            "folder": str(tmp_path / "new" / "folder"),
            "files": FILES,
            **options,
            "_ansible_check_mode": check,
            "_ansible_remote_tmp": str(tmp_path),
        }
        capsys.readouterr()
        with patch_module_args(arguments), pytest.raises(SystemExit):
            text_files.main()
        return json.loads(capsys.readouterr().out)

    return call


def test_writes_once(run: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert run(check=True)["changed"] and not folder.exists()
    assert run()["changed_files"] == [str(folder / "a.py"), str(folder / "b.py")]
    assert {path.name: path.read_text() for path in folder.iterdir()} == FILES
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    assert not run()["changed"]


def test_tells_what_differs(run: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    run()
    file = tmp_path / "new" / "folder" / "b.py"
    file.write_bytes(b"\xff other\n")
    result = run()
    assert result["changed_files"] == [str(file)]
    assert (result["diff"][0]["before"], result["diff"][0]["after"]) == ("\ufffd other\n", "zwei ü\n")
    result = run(mode="0600")
    assert [diff["after"] for diff in result["diff"]] == ["mode 0600\n"] * 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_removes_what_is_not_installed_any_more_and_nothing_else(
    run: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "folder"
    old = {"old.py": "old\n", "below/old.py": "", "below/page.html": ""}
    kept = {"notes.txt": "", "__pycache__/old.cpython-311.pyc": "", "below/kept.py": ""}
    run(files={**FILES, **old, **kept})
    (folder / "elsewhere.py").symlink_to(tmp_path / "elsewhere.py")
    (tmp_path / "elsewhere.py").write_text("somebody's")
    (folder / "folder.py").mkdir()
    gone = [*sorted([*old, "elsewhere.py"])]
    again = {"files": {**FILES, "below/kept.py": ""}, "remove_others": ["*.py", "*.html"]}
    told = run(check=True, **again)
    assert told["changed_files"] == [str(folder / name) for name in gone]
    assert {"before": "old\n", "after": ""}.items() <= told["diff"][gone.index("old.py")].items()
    assert all((folder / name).is_file() for name in gone)
    assert run(**again)["changed_files"] == told["changed_files"]
    assert not any((folder / name).is_symlink() or (folder / name).exists() for name in gone)
    assert all((folder / name).exists() for name in {**FILES, **kept, "folder.py": ""})
    assert (tmp_path / "elsewhere.py").read_text() == "somebody's"
    assert not run(**again)["changed"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "rw"}, "The mode 'rw' is no octal number"),
        ({"files": {"a": {"b": 1}}}, "is no text"),
        ({"folder": "/proc/nowhere"}, "/proc/nowhere/a.py cannot be written"),
    ],
)
def test_says_in_one_sentence_what_is_wrong(
    run: Callable[..., dict[str, Any]], options: dict[str, Any], sentence: str
) -> None:
    result = run(**options)
    assert result["failed"] and sentence in result["msg"]


def test_gives_files_to_who_is_wanted(
    run: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "folder"
    assert run(check=True, owner="nobody", group="nogroup")["changed"] and not folder.exists()
    run()
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(
        os, "lchown", lambda path, user, group: given.append((os.fsdecode(path), user, group))
    )
    user, group = pwd.getpwnam("nobody").pw_uid, grp.getgrnam("nogroup").gr_gid
    assert run(check=True, owner="nobody")["changed"] and not given
    assert run(owner="nobody", group="nogroup")["changed_files"] == [str(folder / name) for name in FILES]
    assert set(given) == {(str(folder / name), *one) for name in FILES for one in ((user, -1), (-1, group))}
    assert not run(owner=pwd.getpwuid(os.getuid()).pw_name)["changed"]
