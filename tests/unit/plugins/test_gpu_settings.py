"""The module gpu_settings as a play sees it: arguments in, result out, one sentence when it cannot be."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._settings.io import command
from ansible_collections.gpufarm.cluster.plugins.modules import gpu_settings
from simulated_machine import Machine

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]
ALL = {
    "persistence_mode": True,
    "power_limit": 300,
    "gpu_clocks": "1200,1410",
    "memory_clocks": "1593,1593",
    "compute_mode": "exclusive_process",
    "ecc_mode": False,
    "accounting_mode": True,
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the module with some entries; returns its result."""
    monkeypatch.setattr(gpu_settings, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(gpu_settings, "FILE", tmp_path / "etc" / "settings.json")
    monkeypatch.setattr(command, "locked", contextlib.nullcontext)

    def run_module(*entries: dict[str, Any], check_mode: bool = False) -> dict[str, Any]:
        arguments = {"settings": list(entries), "_ansible_check_mode": check_mode}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            gpu_settings.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the program of the boot unit."""

    def run_program(*options: str) -> int:
        arguments = ["gpufarm-settings", *options, str(tmp_path / "etc" / "settings.json")]
        monkeypatch.setattr(sys, "argv", arguments)
        return command.main()

    return run_program


def read(index: int = 0) -> dict[str, Any]:
    """Return what the driver tells, asked straight."""
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    found = {
        "persistence_mode": bool(pynvml.nvmlDeviceGetPersistenceMode(gpu)),
        "power_limit": pynvml.nvmlDeviceGetPowerManagementLimit(gpu) // 1000,
        "clock": pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),
        "compute_mode": pynvml.nvmlDeviceGetComputeMode(gpu),
        "ecc_mode": [bool(one) for one in pynvml.nvmlDeviceGetEccMode(gpu)],
        "accounting_mode": bool(pynvml.nvmlDeviceGetAccountingMode(gpu)),
    }
    pynvml.nvmlShutdown()
    return found


# what it does


def test_all_settings_are_made_kept_and_put_back(make_machine: Make, run: Run, tmp_path: Path) -> None:
    machine = make_machine("a100-80gb")
    factory = read()
    foreseen = run(ALL, check_mode=True)
    assert foreseen["changed"] and machine.writes() == [] and not (tmp_path / "etc").exists()
    made = run(ALL)
    assert made["diff"] == foreseen["diff"]
    assert read() == {
        "persistence_mode": True,
        "power_limit": 300,
        "clock": 1200,
        "compute_mode": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        "ecc_mode": [True, False],
        "accounting_mode": True,
    }
    uuid = made["gpus"][0]["uuid"]
    assert made["pending"] == [{"gpu": uuid, "setting": "ecc_mode"}]
    assert made["gpus"][0]["settings"]["power_limit"] == "300 W"
    again = run(ALL)
    assert not again["changed"] and "diff" not in again and again["pending"] == made["pending"]
    assert run()["changed"] and read() == factory
    assert not (tmp_path / "etc" / "settings.json").exists()
    assert not run()["changed"]


def test_a_second_run_sets_only_what_the_driver_does_not_tell(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    run(ALL)
    writes = len(machine.writes())
    assert not run(ALL)["changed"]
    assert machine.writes()[writes:] == ["nvmlDeviceSetGpuLockedClocks", "nvmlDeviceSetMemoryLockedClocks"]


def test_clocks_that_the_driver_forgot_are_locked_again(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    run({"gpu_clocks": "1200,1410"})
    machine.control("boot")
    assert read()["clock"] == 210
    assert not run({"gpu_clocks": "1200,1410"})["changed"] and read()["clock"] == 1200


def test_the_last_entry_counts(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb", "a100-80gb", "t4")
    run({"gpus": ["0", "1"], "power_limit": "300"}, {"gpus": ["1"], "power_limit": "250", "ecc_mode": False})
    assert [read(index)["power_limit"] for index in range(3)] == [300, 250, 70]
    assert [read(index)["ecc_mode"][1] for index in range(3)] == [True, False, True]


def test_a_setting_that_is_left_out_becomes_what_it_was(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    machine.control("set", "0", "power_limit", "350000")
    run({"power_limit": 300, "gpu_clocks": "1200,1410"})
    run({"power_limit": 200, "gpu_clocks": "1200,1410"})
    result = run({"gpu_clocks": "1200,1410"})
    assert result["diff"]["after"].endswith("power_limit 350 W\n")
    assert read()["power_limit"] == 350 and read()["clock"] == 1200
    run({"power_limit": "default"})
    assert read()["power_limit"] == 400 and read()["clock"] == 210
    run()
    assert read()["power_limit"] == 350


def test_only_root_sets(make_machine: Make, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_machine("a100-80gb")
    monkeypatch.setenv("NVMLSIM_UID", "1000")
    assert "run this as root" in run({"power_limit": 300})["msg"]


# what is refused, before any change


@pytest.mark.parametrize(
    ("model", "entry", "words"),
    [
        ("a100-80gb", {"power_limit": 500}, "has no power_limit of 500 W: choose 100 to 400 W, or default"),
        ("a100-80gb", {"power_limit": 99}, "has no power_limit of 99 W"),
        ("a100-80gb", {"power_limit": "much"}, "The power_limit 'much' is no number of watts"),
        (
            "a100-80gb",
            {"gpu_clocks": "1200,1500"},
            "has no gpu_clocks of 1200,1500 MHz: choose 210 to 1410 MHz",
        ),
        ("a100-80gb", {"gpu_clocks": "100,1410"}, "choose 210 to 1410 MHz, or default"),
        ("a100-80gb", {"gpu_clocks": "1410,1200"}, "are no least and most clock"),
        ("a100-80gb", {"gpu_clocks": "1410"}, "are no least and most clock"),
        ("a100-80gb", {"memory_clocks": "1000,1000"}, "choose 1593 to 1593 MHz"),
        (
            "t4",
            {"memory_clocks": "5001,5001"},
            "has no memory_clocks that can be set: leave memory_clocks out",
        ),
        ("a100-80gb", {}, "names no setting: add one of persistence_mode, power_limit"),
        ("a100-80gb", {"gpus": ["7"], "power_limit": 300}, "'7' names no GPU of this machine"),
    ],
)
def test_what_a_gpu_cannot_is_refused(
    make_machine: Make, run: Run, model: str, entry: dict[str, Any], words: str
) -> None:
    machine = make_machine(model, "a100-80gb")
    result = run({"gpus": ["1"], "ecc_mode": False}, {"gpus": ["0"], **entry})
    assert words in result["msg"] and machine.writes() == []


def test_a_card_without_a_setting(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    machine.control("fault-add", "nvmlDeviceGetEccMode", "0", "3")
    machine.control("fault-add", "nvmlDeviceGetPowerManagementLimitConstraints", "0", "3")
    result = run({"ecc_mode": True, "power_limit": 300})
    assert "has no power_limit that can be set" in result["msg"]
    assert "has no ecc_mode that can be set" in result["msg"] and machine.writes() == []
    assert run({"persistence_mode": True})["changed"]


def test_mig_mode_fixes_modes(make_machine: Make, run: Run) -> None:
    machine = make_machine("h100-80gb")
    run({"compute_mode": "prohibited", "persistence_mode": True})
    pynvml.nvmlInit()
    pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)
    writes = len(machine.writes())
    result = run({"compute_mode": "prohibited"})
    assert "is in MIG mode, in which its driver fixes compute_mode" in result["msg"]
    assert "fixes accounting_mode" in run({"accounting_mode": True})["msg"]
    assert len(machine.writes()) == writes
    assert not run({"compute_mode": "default", "persistence_mode": True})["changed"]


def test_a_file_of_somebody_else(make_machine: Make, run: Run, tmp_path: Path) -> None:
    machine = make_machine("a100-80gb")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "settings.json").write_text("[]")
    assert "does not tell the settings" in run({"power_limit": 300})["msg"] and machine.writes() == []


# GPUs that fail


def test_a_lost_gpu_stops_no_other(make_machine: Make, run: Run, boot: Callable[..., int]) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    run({"power_limit": 300})
    machine.control("set", "0", "lost", "1")
    result = run({"power_limit": 250})
    [failed] = result["unreadable"]
    assert failed["index"] == 0 and failed["reason"].endswith("GPU is lost.")
    assert f"GPU 0 cannot be read: {failed['reason']}" in json.dumps(result["warnings"])
    assert read(1)["power_limit"] == 250
    assert "cannot be read" in run({"gpus": ["0"], "power_limit": 250})["msg"]
    machine.control("boot")
    assert boot() == 0 and [read(index)["power_limit"] for index in (0, 1)] == [300, 250]


def test_a_gpu_that_does_not_tell_its_settings_is_unreadable(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    machine.simgpu("fault", "add", "nvmlDeviceGetPowerManagementLimit", 999, "--nth", 2)
    result = run({"power_limit": 300})
    [failed] = result["unreadable"]
    assert failed["index"] == 1 and failed["uuid"].startswith("GPU-") and failed["pci_address"]
    assert failed["reason"] == "NVML was asked for its settings and answered: UNKNOWN."
    assert len(result["gpus"]) == 1


def test_a_setting_that_is_refused_stops_no_other_and_is_tried_again(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    machine.control("fault-add", "nvmlDeviceSetPowerManagementLimit", "0", "999")
    result = run({"power_limit": 300, "compute_mode": "prohibited"})
    assert "GPU 0" in result["msg"] and "refused the power_limit 300 W" in result["msg"]
    assert [read(index)["compute_mode"] for index in (0, 1)] == [pynvml.NVML_COMPUTEMODE_PROHIBITED] * 2
    machine.control("fault-clear")
    assert run({"power_limit": 300, "compute_mode": "prohibited"})["changed"]
    run()
    assert read()["power_limit"] == 400 and read()["compute_mode"] == 0


def test_clocks_that_could_not_be_put_back_are_put_back_later(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    run({"gpu_clocks": "1200,1410"})
    machine.control("fault-add", "nvmlDeviceResetGpuLockedClocks", "0", "999")
    assert "refused the gpu_clocks default" in run()["msg"]
    machine.control("fault-clear")
    assert run()["changed"] and read()["clock"] == 210


def test_volatile_settings_without_persistence_are_told(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb")
    words = "forgets accounting_mode when no program uses the GPU"
    assert words not in json.dumps(run({"accounting_mode": True, "persistence_mode": True, "ecc_mode": True}))
    assert words in json.dumps(run({"accounting_mode": True})["warnings"])


# at boot


def test_a_boot_sets_again_what_the_driver_forgot(
    make_machine: Make, run: Run, boot: Callable[..., int]
) -> None:
    machine = make_machine("a100-80gb", "t4")
    run({"gpus": ["0"], **ALL}, {"gpus": ["1"], "power_limit": 65})
    assert boot("--check") == 0
    machine.control("boot")
    assert boot("--check") == 1
    assert boot() == 0 and boot("--check") == 0
    assert read()["clock"] == 1200 and read()["ecc_mode"] == [False, False]
    assert read(1)["power_limit"] == 65 and read()["compute_mode"] == 3


def test_a_gpu_that_fails_at_boot_stops_no_other(
    make_machine: Make, run: Run, boot: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    run({"power_limit": 300})
    machine.control("boot")
    machine.control("set", "0", "lost", "1")
    assert boot() == 1 and "GPU 0" in capsys.readouterr().err
    assert read(1)["power_limit"] == 300


def test_a_setting_that_became_impossible_stops_no_other_at_boot(
    make_machine: Make, run: Run, boot: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    machine = make_machine("a100-80gb")
    run({"power_limit": 300, "compute_mode": "prohibited"})
    pynvml.nvmlInit()
    pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)
    machine.control("boot")
    assert boot() == 1 and "fixes compute_mode" in capsys.readouterr().err
    assert read()["power_limit"] == 300


def test_settings_are_forgotten_on_a_machine_whose_driver_is_gone(
    make_machine: Make, run: Run, tmp_path: Path
) -> None:
    machine = make_machine("a100-80gb")
    run({"power_limit": "300", "ecc_mode": False})
    machine.simgpu("driver", "unload")
    refused = run({"power_limit": "250"})
    assert "not loaded" in refused["msg"]
    gone = run()
    assert gone["changed"] and not (tmp_path / "etc" / "settings.json").exists()
    assert "ECC mode" in json.dumps(gone["warnings"])
    assert not run()["changed"]
