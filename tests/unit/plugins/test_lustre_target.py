# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No device is formatted that holds something, and none that two servers share is used twice."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.modules import lustre_target

pytestmark = pytest.mark.skipif(shutil.which("mke2fs") is None, reason="e2fsprogs is not installed")


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """An empty file that stands in for a device."""
    path = tmp_path / "device"
    path.touch()
    os.truncate(path, 8 * 1024**2)
    return path


def target(device: Path, **changes: Any) -> dict[str, Any]:
    return {
        "device": str(device),
        "name": "home-OST0000",
        "kind": "ost",
        "mgs": False,
        "size_mb": 8,
        "service_nodes": ["10.0.0.1@tcp", "10.0.0.2@tcp"],
        **changes,
    }


def test_an_empty_device_is_formatted_when_it_is_confirmed(device: Path) -> None:
    needed, problem = lustre_target.check(target(device), [], "oss1")
    assert not needed and "is empty and would be formatted as home-OST0000; add it to" in problem
    assert lustre_target.check(target(device), [str(device)], "oss1") == (True, "")


def make_ext4(device: Path) -> None:
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-L", "theirs", device], check=True)


def write_at(offset: int) -> Any:
    def write(device: Path) -> None:
        with device.open("r+b") as file:
            file.seek(offset)
            file.write(b"mine")

    return write


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (make_ext4, "a file system of type ext4 labelled theirs"),
        (write_at(0), "has data at its beginning"),
        (write_at(1024**2 - 4), "has data at its beginning"),
    ],
)
def test_a_device_that_holds_something_is_not_although_it_is_confirmed(
    device: Path, plant: Any, words: str
) -> None:
    plant(device)
    before = device.read_bytes()
    needed, problem = lustre_target.check(target(device), [str(device)], "oss1")
    assert not needed and words in problem
    assert device.read_bytes() == before


@pytest.mark.parametrize("busy", [True, False])
def test_a_device_that_the_kernel_has_in_use_is_not_although_its_beginning_is_empty(
    device: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    def opened(path: str, flags: int, *others: Any, really: Any = os.open, **more: Any) -> int:
        if path != str(device):
            return int(really(path, flags, *others, **more))
        assert flags & os.O_EXCL
        if busy:
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        return int(really(path, os.O_RDONLY))

    monkeypatch.setattr(stat, "S_ISBLK", lambda _mode: True)
    monkeypatch.setattr(os, "open", opened)
    needed, problem = lustre_target.check(target(device), [str(device)], "oss1")
    assert needed is not busy
    assert problem == (f"{device} on oss1 is in use; 'lsblk {device}' there tells by what." if busy else "")


def test_a_check_tells_what_would_be_formatted(device: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {"targets": [target(device)], "confirmed": [str(device)], "_ansible_check_mode": True}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        lustre_target.main()
    told = json.loads(capsys.readouterr().out)
    assert told["changed"] and told["formatted"] == ["home-OST0000"]
    assert told["diff"] == {"before": "", "after": f"home-OST0000 on {device}\n"}
    assert not device.read_bytes().strip(b"\0")


def test_one_device_under_two_names_is_one_device(device: Path, tmp_path: Path) -> None:
    other = tmp_path / "by-id"
    other.symlink_to(device)
    both = [target(device), target(other, name="home-OST0001")]
    (problem,) = lustre_target.same_device(both)
    assert f"{device} of home-OST0000 and {other} of home-OST0001 are the same device" in problem
    assert lustre_target.same_device(both[:1]) == []


def answer(monkeypatch: pytest.MonkeyPatch, *answers: timed.Answer) -> list[list[str]]:
    """Have e2mmpstatus answer; return what is asked."""
    asked: list[list[str]] = []
    waiting = list(answers)

    def run(words: list[str], _seconds: float) -> timed.Answer:
        asked.append(words)
        return waiting.pop(0)

    monkeypatch.setattr(timed, "run", run)
    return asked


def test_what_another_server_has_mounted_is_told(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = timed.Answer(0, "MMP_block:\n    mmp_node_name: oss2\n", "")
    asked = answer(monkeypatch, timed.Answer(1, "", "device currently active"), told)
    alone = target(device, name="home-OST0001", service_nodes=[])
    assert lustre_target.mounted_elsewhere([target(device), alone]) == {"home-OST0000": "oss2"}
    assert [words[1:] for words in asked] == [[str(device)], ["-i", str(device)]]


def test_what_nobody_has_mounted_is_not(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, timed.Answer(0, "it is safe to mount", ""))
    assert lustre_target.mounted_elsewhere([target(device)]) == {}


@pytest.mark.parametrize("status", [2, None])
def test_a_question_without_an_answer_is_an_error(
    device: Path, monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    answer(monkeypatch, timed.Answer(status, "", "MMP feature not enabled."))
    with pytest.raises(OSError, match="MMP feature not enabled"):
        lustre_target.mounted_elsewhere([target(device)])
