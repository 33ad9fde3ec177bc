"""Cordons of GPUs: made by an administrator or by health, ended by an administrator only."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder as cordons
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import command, store
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import Machine
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from health_readings import UUID, findings_of, gpu, machine

Run = Callable[..., int]
BROKEN = machine(gpu(ecc_uncorrected=1))
HOT = machine(gpu(temperature=91))
HUNG = machine(gpu(hung_in="nvmlX"))
WELL = machine(gpu())
UNKNOWN = machine(gpu(), events=None, log_error="No journal.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cordons"
    monkeypatch.setattr(cordons, "FOLDER", path)
    return path


@pytest.fixture
def run(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on a machine that is in a given state."""
    for function in (store.read, store.write, store.write_verdicts, store.lock.__wrapped__):  # type: ignore[attr-defined]
        monkeypatch.setattr(function, "__defaults__", (tmp_path,))

    def run_on(state: Machine, *arguments: str, **settings: Any) -> int:
        monkeypatch.setattr(command, "read_machine", lambda _settings, _before, _level=0: state)
        file = tmp_path / "settings.json"
        file.write_text(json.dumps(settings))
        return command.main(["--settings", str(file), *arguments])

    return run_on


def test_health_cordons_a_gpu_that_must_not_be_used_and_does_not_end_that(run: Run, folder: Path) -> None:
    run(BROKEN, "--record")
    file = folder / f"{UUID}.json"
    told = json.loads(file.read_text())
    assert (told["gpu"], told["by"]) == (UUID, "health")
    assert told["reason"] == "ecc_uncorrected: Uncorrectable memory errors since the driver was loaded: 1."
    assert file.stat().st_mode & 0o777 == 0o644
    run(WELL, "--record")
    run(BROKEN, "--record")
    assert json.loads(file.read_text()) == told


@pytest.mark.parametrize("state", [WELL, HOT, machine(gpu(persistence=False)), machine(pci_gpus=1)])
def test_health_does_not_cordon_for_what_can_be_repaired_beside_it(
    run: Run, folder: Path, state: Machine
) -> None:
    run(state, "--record")
    assert cordons.read(folder) == {}


def test_a_look_alone_and_a_role_that_does_not_want_it_cordon_nothing(run: Run, folder: Path) -> None:
    run(BROKEN)
    run(BROKEN, "--record", cordon=False)
    assert cordons.read(folder) == {}


def test_after_uncordon_the_next_bad_verdict_cordons_again(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(BROKEN, "--record")
    assert run(WELL, "uncordon", UUID) == 0
    assert f"The cordon of {UUID} is ended." in capsys.readouterr().out
    run(WELL, "--record")
    assert cordons.read(folder) == {}
    run(BROKEN, "--record")
    assert set(cordons.read(folder)) == {UUID}


def test_a_gpu_without_a_uuid_is_not_cordoned(run: Run, folder: Path) -> None:
    unknown = machine(gpu(hung_in="nvmlX"))
    bare = machine(type(unknown.gpus[0])(0, "", "", "", {}, {}, "nvmlX"))
    assert run(bare, "--record") == 2
    assert cordons.read(folder) == {}


def test_an_administrator_cordons_and_sees_it(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(WELL, "cordons") == 0
    assert capsys.readouterr().out == "Nothing is cordoned on this machine.\n"
    assert run(WELL, "cordon", "MIG-7", "--reason", "noise\nof \x1b[1mthe fan") == 0
    capsys.readouterr()
    assert run(WELL, "cordons") == 0
    since = cordons.read(folder)["MIG-7"].since
    assert capsys.readouterr().out == (
        f"MIG-7 is cordoned by administrator since {since} (noise of  [1mthe fan);"
        " 'gpufarm-health uncordon MIG-7' ends the cordon.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("cordon", "../../etc/passwd", "--reason", "x"), "is no UUID of a GPU or slice: give one that"),
        (("cordon", "0", "--reason", "x"), "is no UUID of a GPU or slice"),
        (("cordon", UUID, "--reason", " "), "has no reason: give one with --reason"),
        (("uncordon", UUID), "is not cordoned: nothing is cordoned on this machine."),
        (("uncordon", "../cordons"), "is not cordoned"),
    ],
)
def test_wrong_words_change_nothing(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    assert run(WELL, *arguments) == 3
    assert problem in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"gpu": "GPU-2"}', '{"gpu": "GPU-2", "reason": 1, "since": "", "by": "health"}',
     '{"gpu": "GPU-3", "reason": "x", "since": "y", "by": "health"}',
     '{"gpu": "GPU-2", "reason": "x", "since": "y", "by": "somebody"}', "\udcff"],
)  # fmt: skip
def test_a_damaged_file_is_a_cordon(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "GPU-2.json").write_bytes(text.encode(errors="surrogateescape"))
    assert str(cordons.read(folder)["GPU-2"]) == (
        "GPU-2 is cordoned (its file is damaged); 'gpufarm-health uncordon GPU-2' ends the cordon"
    )
    cordons.remove("GPU-2", folder)
    assert cordons.read(folder) == {}


def test_foreign_things_in_the_folder_are_told_and_no_crash(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("x")
    (folder / "GPU-2.json").symlink_to("notes.txt")
    (folder / "GPU-4.json").mkdir()
    os.mkfifo(folder / "GPU-5.json")
    (folder / ".GPU-6.json.new").write_text("{")  # it is being written
    (folder / "GPU-7.json").write_text("[" * 100_000)
    Path(os.fsdecode(os.fsencode(folder) + b"/GPU-\xff.json")).write_text("{")
    found = cordons.read(folder)
    assert set(found) == {"notes.txt", "GPU-2", "GPU-4", "GPU-5", "GPU-7", "GPU-?"}
    assert all(str(one).encode() for one in found.values())


def test_a_folder_that_cannot_be_read_is_an_error(folder: Path) -> None:
    folder.write_text("")
    with pytest.raises(GpuError, match=r"cannot be read \(Not a directory\): run this as root, or repair"):
        cordons.read(folder)


def test_a_cordon_is_a_finding(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{UUID}.json").write_text("")
    found = findings_of(machine(gpu(), cordons=tuple(cordons.read(folder).values())))["cordon"]
    assert (found.status, found.gpu, found.level) == ("warning", UUID, "administrator")
    assert found.action == f"run 'gpufarm-health uncordon {UUID}' after the repair"


def test_a_machine_is_drained_for_what_concerns_the_machine(run: Run, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\necho "$1" >> {calls}\n')
    hook.chmod(0o755)
    hooks = {"drain_command": [str(hook), "drain"], "resume_command": [str(hook), "resume"]}
    for state in (HOT, BROKEN, WELL):
        run(state, "--record", **hooks)
    assert not calls.exists()
    for state in (HUNG, UNKNOWN, HUNG, HOT):
        run(state, "--record", **hooks)
    assert calls.read_text().splitlines() == ["drain", "resume"]


def test_without_cordons_the_machine_is_drained_for_a_gpu(run: Run, tmp_path: Path) -> None:
    run(HOT, "--record", cordon=False, drain_command=["touch", str(tmp_path / "drained")])
    assert (tmp_path / "drained").exists()


def test_the_setting_is_a_switch(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WELL, cordon="no") == 3
    assert "The value 'no' of 'cordon' is neither true nor false" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cordons, "write", full)
    assert run(BROKEN, "--record") == 2
    assert "GPU-1 cannot be cordoned in" in capsys.readouterr().err
