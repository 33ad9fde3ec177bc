"""Modules of Ansible about trees of module files, and the program that finds trees at logins."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments import plan as environments
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.io import command, tree
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.io import machine as machine_facts
from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod.lua import HEADER
from ansible_collections.gpufarm.cluster.plugins.modules import environment_modules, environment_modules_info

ONE = {"gcc/13.lua": f"{HEADER}\none\n", "gcc/.modulerc.lua": f"{HEADER}\ntwo\n", "a/b/1.lua": f"{HEADER}\n"}


def run(
    capsys: pytest.CaptureFixture[str], module: Any, check: bool = False, **options: Any
) -> dict[str, Any]:
    with patch_module_args({"_ansible_check_mode": check, **options}), pytest.raises(SystemExit):
        module.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def write(
    capsys: pytest.CaptureFixture[str], folder: Path, machine: str = "m1", **options: Any
) -> dict[str, Any]:
    return run(capsys, environment_modules, folder=str(folder), machine=machine, **options)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_tree_is_written_once_by_all_machines_that_share_it(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "site/modules"
    shown = write(capsys, folder, files=ONE, check=True)
    assert shown["changed"] and not folder.exists() and len(shown["diff"]) == 3
    first = write(capsys, folder, files=ONE)
    assert first["diff"] == shown["diff"] and {path: (folder / path).read_text() for path in ONE} == ONE
    assert not write(capsys, folder, files=ONE)["changed"]
    second = write(capsys, folder, "m2", files=ONE)
    assert second["changed"] and second["diff"] == [] and second["users"] == ["m1"]
    assert files(folder) == {*ONE, ".gpufarm/m1", ".gpufarm/m2"}


def test_files_of_others_stay_and_folders_that_are_empty_go(tmp_path: Path, capsys: Any) -> None:
    write(capsys, tmp_path, files=ONE)
    (tmp_path / "gcc/14.lua").write_text("-- by hand\n")
    (tmp_path / "gcc/13-notes.lua").symlink_to("13.lua")
    (tmp_path / "gcc/binary.lua").write_bytes(b"\xff")
    changed = write(capsys, tmp_path, files={})
    assert sorted(one["before_header"] for one in changed["diff"]) == sorted(
        str(tmp_path / path) for path in ONE
    )
    assert files(tmp_path) - {".gpufarm/m1"} == {"gcc/14.lua", "gcc/binary.lua"}
    assert not (tmp_path / "a").exists()


def test_the_last_machine_that_leaves_removes_what_was_written(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "modules"
    for machine in ("m1", "m2"):
        write(capsys, folder, machine, files=ONE)
    assert write(capsys, folder, "m1", state="absent")["users"] == ["m2"]
    assert files(folder) == {*ONE, ".gpufarm/m2"}
    assert not write(capsys, folder, "m1", state="absent")["changed"]
    assert write(capsys, folder, "m2", state="absent", check=True)["changed"] and folder.exists()
    assert write(capsys, folder, "m2", state="absent")["changed"]
    assert not folder.exists()
    assert not write(capsys, folder, "m2", state="absent")["changed"]


def test_a_machine_that_cannot_write_uses_a_tree_that_is_as_declared(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(capsys, tmp_path, files=ONE)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(tmp_path)))
    assert not write(capsys, tmp_path, "m2", files=ONE)["changed"]
    refused = write(capsys, tmp_path, "m2", files={})
    assert "cannot be written and has other modules than are wanted" in refused["msg"]
    assert files(tmp_path) == {*ONE, ".gpufarm/m1"}


def inspect(capsys: Any, folder: Path, **options: Any) -> dict[str, Any]:
    return run(capsys, environment_modules_info, folder=str(folder), **options)


def test_whose_a_tree_is(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "modules"
    assert not inspect(capsys, folder)["tree"]["foreign"]
    folder.mkdir()
    assert not inspect(capsys, folder)["tree"]["foreign"]
    (folder / "notes").touch()
    assert inspect(capsys, folder)["tree"]["foreign"]
    (folder / "notes").unlink()
    write(capsys, folder, files=ONE)
    (folder / "gcc/14.lua").write_text("-- by hand\n")
    found = inspect(capsys, folder, files=["gcc/13.lua", "gcc/14.lua", "gcc/15.lua"])["tree"]
    assert not found["foreign"] and found["taken"] == ["gcc/14.lua"]


def test_which_installations_are_there(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").touch()
    found = inspect(
        capsys, tmp_path / "modules", prefixes=[str(tmp_path), str(tmp_path / "file"), "/missing/gcc"]
    )
    assert found["missing"] == ["/missing/gcc", str(tmp_path / "file")] and found["silent"] == []


def test_a_toolkit_counts_once_under_its_longer_name(tmp_path: Path, capsys: Any) -> None:
    for version in ("12.4", "13.0"):
        (tmp_path / f"cuda-{version}/bin").mkdir(parents=True)
        (tmp_path / f"cuda-{version}/bin/nvcc").touch()
    (tmp_path / "cuda-11.8/lib64").mkdir(parents=True)  # without the compiler
    (tmp_path / "cuda-12").symlink_to("cuda-12.4")
    found = inspect(capsys, tmp_path / "modules", toolkits=[f"{tmp_path}/cuda-*", f"{tmp_path}/none-*"])
    assert found["toolkits"] == [str(tmp_path / "cuda-12.4"), str(tmp_path / "cuda-13.0")]


def test_environments_are_those_that_the_role_of_them_tells_a_hub(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = "".join(f"{name}==1.0 --hash=sha256:{'0' * 64}\n" for name in environments.NEEDED)
    more: list[dict[str, Any]] = [
        {"name": "all", "title": "For all", "lock": lock},
        {"name": "some", "lock": lock, "groups": ["course"]},
        {"name": "tree", "setup": "source /srv/tree"},
    ]
    settings = {
        "names": "",
        "more": more,
        "default": "",
        "folder": str(tmp_path),
        "pip_index_url": "",
        "shipped": {},
    }
    there = {
        "python": "3.13",
        "processor": "x86_64",
        "unsafe": "",
        "driver": "",
        "versions": [],
        "free": 1 << 40,
    }
    made = environments.plan(settings, there)
    for one in made["environments"]:
        (Path(one["folder"]) / "bin").mkdir(parents=True)
        (Path(one["folder"]) / "bin/python").touch()
    index = tmp_path / "environments.json"
    index.write_text(made["index"])
    monkeypatch.setattr(machine_facts, "ENVIRONMENTS", index)
    first = made["environments"][0]
    expected = {"name": "all", "title": "For all", "version": first["version"], "folder": first["folder"]}
    assert inspect(capsys, tmp_path / "modules")["environments"] == [expected]
    index.write_text("broken")
    assert "The machine cannot be inspected" in inspect(capsys, tmp_path / "modules")["msg"]


def test_a_file_system_that_hangs_is_told(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_modules_info, "PATIENCE", 0.2)
    monkeypatch.setattr(Path, "is_dir", lambda path: time.sleep(1000) if path.name == "hangs" else True)
    found = inspect(capsys, tmp_path / "modules", prefixes=["/net/hangs", "/net/works"])
    assert found["silent"] == ["/net/hangs"] and found["missing"] == []


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_tree_that_hangs_is_told(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(environment_modules, "PATIENCE", 0.2)
    monkeypatch.setattr(tree, "read", lambda folder: time.sleep(1000))
    refused = write(capsys, tmp_path, state=state)
    assert refused["msg"].startswith(f"{tmp_path} does not answer; ")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of this user, and two trees of which one is missing."""
    (tmp_path / "tree").mkdir()
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"trees": [str(tmp_path / "tree"), str(tmp_path / "missing")]}))
    monkeypatch.setattr(command, "SETTINGS", settings)

    class Account:
        pw_dir = str(tmp_path / "home")

    monkeypatch.setattr(command.pwd, "getpwuid", lambda user: Account)
    return tmp_path / "home"


def test_a_login_has_the_trees_that_are_there(home: Path, capsys: Any) -> None:
    assert command.main() == 0
    assert capsys.readouterr() == (f"{home.parent}/tree\n", "")
    (home / "modulefiles").mkdir(parents=True)
    assert command.main() == 0
    assert capsys.readouterr().out == f"{home}/modulefiles:{home.parent}/tree\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_modules_of_somebody_else_are_not_searched_in_a_home(home: Path, capsys: Any) -> None:
    (home / "modulefiles").mkdir(parents=True)
    os.chown(home / "modulefiles", 12345, 12345)
    assert command.main() == 0
    assert capsys.readouterr().out == f"{home.parent}/tree\n"


def test_a_tree_that_hangs_is_named_and_left_out(
    home: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PATIENCE", 0.2)
    is_tree = command.is_tree
    monkeypatch.setattr(
        command,
        "is_tree",
        lambda path, *owner: time.sleep(5000) if path.endswith("missing") else is_tree(path, *owner),
    )
    assert command.main() == 0
    said = capsys.readouterr()
    assert said.out == f"{home.parent}/tree\n"
    assert said.err == f"module: {home.parent}/missing does not answer; its modules are left out.\n"


def test_without_settings_a_login_has_the_trees_of_lmod(home: Path, capsys: Any) -> None:
    command.SETTINGS.unlink()
    assert command.main() == 1
    assert capsys.readouterr() == ("", "")


def test_the_record_asks_what_modules_are_made_of(
    home: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home.parent
    asked = {"trees": [f"{folder}/tree"], "prefixes": [f"{folder}/gcc"], "toolkits": [f"{folder}/cuda-*"]}
    command.SETTINGS.write_text(json.dumps(asked))
    monkeypatch.setattr(command.sys, "argv", ["gpufarm-modulepath", "--found"])

    def told() -> dict[str, Any]:
        assert command.main() == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    first = told()
    assert first == told() and first["missing"] == [f"{folder}/gcc"]
    for path in ("gcc", "cuda-13.0/bin"):
        (folder / path).mkdir(parents=True)
    (folder / "cuda-13.0/bin/nvcc").touch()
    options = {"folder": f"{folder}/tree", "prefixes": asked["prefixes"], "toolkits": asked["toolkits"]}
    assert told() == {**first, "missing": [], "toolkits": [f"{folder}/cuda-13.0"]}
    seen = run(capsys, environment_modules_info, **options)
    monkeypatch.setattr(command.sys, "argv", ["gpufarm-modulepath", "--found"])
    assert told().items() <= seen.items()
    command.SETTINGS.write_text(json.dumps({"trees": asked["trees"]}))
    assert command.main() == 1 and str(command.SETTINGS) in capsys.readouterr().err
