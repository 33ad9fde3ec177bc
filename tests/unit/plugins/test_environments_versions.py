"""Modules about versions of environments: which are there, and which of them go."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import mmap
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.io import versions
from ansible_collections.gpufarm.cluster.plugins.modules import (
    notebook_environments,
    notebook_environments_info,
)

OLD, NEW = "scientific/0123456789ab", "scientific/ba9876543210"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two versions of an environment, of which one was not built to the end, and something of others."""
    for name, complete in ((OLD, True), (NEW, False)):
        path = tmp_path / "environments" / name
        (path / "lib").mkdir(parents=True)
        (path / "lib/package.so").write_bytes(b"x" * 4096)
        (path / ".python_environment.json").write_text(json.dumps({"complete": complete}))
    (tmp_path / "environments/notes").mkdir()
    (tmp_path / "environments/notes/mine.txt").touch()
    return tmp_path / "environments"


def run(
    folder: Path, capsys: pytest.CaptureFixture[str], check: bool = False, **options: Any
) -> dict[str, Any]:
    with (
        patch_module_args({"folder": str(folder), "_ansible_check_mode": check, **options}),
        pytest.raises(SystemExit),
    ):
        (notebook_environments if "keep" in options else notebook_environments_info).main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def names(answer: dict[str, Any]) -> list[str]:
    return [f"{one['name']}/{one['version']}" for one in answer["versions"]]


def test_versions_are_told_and_nothing_is_removed(folder, capsys):
    answer = run(folder, capsys)
    assert names(answer) == [OLD, NEW]
    assert [one["complete"] for one in answer["versions"]] == [True, False]
    assert not answer["changed"]
    assert answer["free"] > 0
    assert answer["shared"] is False
    assert answer["python"].startswith("3.")


def test_a_machine_without_environments_has_none(tmp_path, capsys):
    assert run(tmp_path / "missing/below", capsys)["versions"] == []


def test_what_is_not_kept_goes_and_what_is_of_others_stays(folder, capsys):
    predicted = run(folder, capsys, check=True, keep=[NEW])
    assert (folder / OLD).exists()
    answer = run(folder, capsys, keep=[NEW])
    assert predicted["diff"] == answer["diff"]
    assert answer["changed"]
    assert answer["diff"]["after"] == f"{NEW}\n"
    assert not (folder / OLD).exists()
    assert (folder / "notes/mine.txt").exists()
    assert not run(folder, capsys, keep=[NEW])["changed"]


def test_empty_folders_go_with_the_last_version(folder, capsys):
    (folder / "notes/mine.txt").unlink()
    (folder / "notes").rmdir()
    run(folder, capsys, keep=[])
    assert not folder.exists()


def test_a_version_that_a_process_uses_stays(folder, capsys):
    file = (folder / OLD / "lib/package.so").open("rb")
    with file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        answer = run(folder, capsys, keep=[])
    assert "uses it" in answer["kept"][OLD]
    assert (folder / OLD).exists()
    assert not (folder / NEW).exists()


def test_a_version_that_a_notebook_server_offers_stays(folder, capsys):
    server = subprocess.Popen(["sleep", "60"], env={"JUPYTER_PATH": f"/x:{folder / OLD}/jupyter"})
    try:
        answer = run(folder, capsys, keep=[])
    finally:
        server.kill()
        server.wait()
    assert answer["kept"][OLD].startswith(f"sleep ({server.pid})")
    assert not (folder / NEW).exists()


def test_a_version_that_is_used_under_the_real_name_of_its_folder_stays(folder, capsys, tmp_path):
    (tmp_path / "link").symlink_to(folder.parent)
    file = (folder / OLD / "lib/package.so").open("rb")
    with file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        answer = run(tmp_path / "link" / folder.name, capsys, keep=[])
    assert list(answer["kept"]) == [OLD]


def test_an_interrupted_removal_is_no_environment_any_more(folder, capsys, monkeypatch):
    def interrupted(_path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(versions.shutil, "rmtree", interrupted)
    assert "cannot be removed" in run(folder, capsys, keep=[])["msg"]
    record = json.loads((folder / OLD / ".python_environment.json").read_text())
    assert (record["created"], record["complete"]) == (False, False)


def test_a_folder_of_somebody_else_is_told(tmp_path, capsys):
    assert run(Path("/usr/lib"), capsys)["unsafe"] == ""
    assert run(Path("/tmp/environments"), capsys)["unsafe"] == "/tmp"


def test_links_are_not_followed(folder, capsys, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/.python_environment.json").write_text('{"complete": true}')
    (folder / "scientific/link").symlink_to(tmp_path / "elsewhere")
    run(folder, capsys, keep=[])
    assert (tmp_path / "elsewhere/.python_environment.json").exists()


@pytest.mark.parametrize(
    ("kind", "shared"),
    [
        ("ext4", False),
        ("overlay", False),
        ("nfs4", True),
        ("lustre", True),
        ("gpfs", True),
        ("fuse.ceph", True),
    ],
)
def test_a_file_system_that_is_not_known_as_local_is_shared(tmp_path, kind, shared):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 0:1 / / rw - ext4 /dev/sda rw\n"
        f"2 1 0:2 / {tmp_path / 'environments'} rw shared:2 - {kind} source rw\n"
    )
    (tmp_path / "environments").mkdir()
    assert versions.is_shared(tmp_path / "environments" / "scientific", mounts) is shared


def test_versions_on_a_shared_file_system_stay(folder, capsys, monkeypatch):
    monkeypatch.setattr(versions, "is_shared", lambda _folder: True)
    assert run(folder, capsys)["shared"]
    assert run(folder, capsys, keep=[])["kept"] == dict.fromkeys((OLD, NEW), "other machines may use it")
    assert (folder / OLD).exists()
