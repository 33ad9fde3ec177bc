"""The module mig_partition as a play sees it: arguments in, result out, one sentence when it cannot be."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import lock
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.modules import mig_partition
from simulated_machine import Machine

from lab.nvmlsim.install import GUEST

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the module with some arguments; returns its result."""
    monkeypatch.setattr(mig_partition, "FOLDER", tmp_path / "run")

    def run_module(check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
        with patch_module_args({**arguments, "_ansible_check_mode": check_mode}), pytest.raises(SystemExit):
            mig_partition.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


def profiles(result: dict[str, Any]) -> list[str]:
    return [one["profile"] for one in result["slices"]]


# what it does


def test_gpus_that_cannot_be_partitioned_are_left_and_named(make_machine: Make, run: Run) -> None:
    make_machine("t4", "a100-80gb")
    assert "cannot be partitioned" in run(flavor="7x 1g.10gb")["msg"]
    result = run(flavor="7x 1g.10gb", gpus=["capable"])
    assert len(result["slices"]) == 7 and result["incapable"] == result["machine"][:1]
    again = run(flavor="7x 1g.10gb", gpus=["capable"])
    assert not again["changed"] and again["incapable"] == result["incapable"]


def test_a_machine_is_partitioned(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "t4")
    request = {"flavor": "1x 3g.40gb, 2x 1c.3g.40gb", "gpus": ["0"]}
    foreseen = run(check_mode=True, **request)
    assert foreseen["changed"] and machine.writes() == [] and foreseen["slices"] == []
    result = run(**request)
    assert result["changed"] and not result["reboot_required"] and result["mapped"] == []
    assert profiles(result) == ["3g.40gb", "1c.3g.40gb", "1c.3g.40gb"]
    assert result["layout"] == foreseen["layout"]
    assert result["layout"][0]["partitions"] == [
        {"profile": "3g.40gb", "start": 0, "compute_instances": ["3g.40gb"]},
        {"profile": "3g.40gb", "start": 4, "compute_instances": ["1c.3g.40gb", "1c.3g.40gb"]},
    ]
    assert result["diff"]["after"].splitlines()[1:] == ["  3g.40gb at 0", "  3g.40gb (1c, 1c) at 4"]
    assert len(result["machine"]) == 2
    writes = len(machine.writes())
    again = run(**request)
    assert not again["changed"] and "diff" not in again and again["slices"] == result["slices"]
    same = run(layout=result["layout"][0]["partitions"], gpus=["0"])
    assert not same["changed"] and len(machine.writes()) == writes


def test_an_empty_layout_is_mode_on_and_no_partitions(make_machine: Make, run: Run) -> None:
    make_machine("h100-80gb")
    result = run(layout=[])
    assert result["changed"] and result["layout"][0]["mig_enabled"]
    assert result["layout"][0]["partitions"] == [] and not run(layout=[])["changed"]


def test_equivalent_profiles_are_told(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb", "h200-141gb")
    result = run(flavor="7x 1g.10gb", equivalents=True)
    assert profiles(result) == ["1g.10gb"] * 7 + ["1g.18gb"] * 7
    assert [(one["asked"], one["given"]) for one in result["mapped"]] == [("1g.10gb", "1g.18gb")]
    assert "  1g.18gb stands for 1g.10gb" in result["diff"]["after"].splitlines()
    assert not run(flavor="7x 1g.10gb", equivalents=True)["changed"]


def test_compute_instances_in_use_and_right_ones_stay(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    first = run(flavor="3x 1c.3g.40gb")["slices"]
    machine.control("process-start", first[0]["uuid"], "4242", "1")
    second = run(flavor="1x 1c.3g.40gb, 1x 2c.3g.40gb")
    assert "is used by" in second["msg"], "2c starts at 0, where the one in use is"
    second = run(flavor="1x 1c.3g.40gb")["slices"]
    assert second == first[:1]


def test_a_mode_that_needs_a_reboot_is_no_failure(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    machine.control("set", "0", "passthrough", "1")
    result = run(flavor="2x 3g.40gb")
    assert result["changed"] and result["reboot_required"] and profiles(result) == ["3g.40gb"] * 2
    assert "MIG mode on after a reboot" in result["diff"]["after"]
    assert "reboot the machine and run again" in json.dumps(result["warnings"])
    again = run(flavor="2x 3g.40gb")
    assert again["reboot_required"] and not again["changed"]
    assert run(check_mode=True, flavor="2x 3g.40gb")["reboot_required"]
    machine.control("boot")
    assert profiles(run(flavor="2x 3g.40gb")) == ["3g.40gb"] * 4


def test_a_gpu_that_needs_a_reset_is_reset(
    make_machine: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine("a100-80gb")
    machine.control("set", "0", "passthrough", "1")
    text = f"echo $* >> {tmp_path}/resets; simgpu set 0 passthrough=0; simgpu reset 0"
    script(tmp_path, monkeypatch, "nvidia-smi", text)
    result = run(flavor="2x 3g.40gb")
    assert profiles(result) == ["3g.40gb"] * 2 and not result["reboot_required"]
    uuid = result["machine"][0]
    assert (tmp_path / "resets").read_text().splitlines() == [f"--gpu-reset -i {uuid}"]


# services


def script(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Put a command in the path, beside simgpu and what scripts need."""
    commands = folder / "commands"
    commands.mkdir(exist_ok=True)
    simgpu = shlex.join([sys.executable, str(GUEST / "simgpu.py")])
    (commands / "simgpu").write_text(f'#!/bin/sh\nexec {simgpu} "$@"\n')
    (commands / name).write_text(f"#!/bin/sh\n{text}\n")
    for file in commands.iterdir():
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:/usr/bin:/bin")


# One unit, monitor.service, that holds GPU 0 while it runs; `dead` is not running.
SYSTEMCTL = """
case "$*" in
  "show"*monitor.service) if [ -e {folder}/up ]; then echo active; else echo inactive; fi ;;
  "show"*) echo inactive ;;
  "stop monitor.service") echo stop >> {folder}/acts; rm {folder}/up; simgpu set 0 clients=0 ;;
  "start monitor.service") echo start >> {folder}/acts; touch {folder}/up; simgpu set 0 clients=1 ;;
  *) echo "unexpected $*" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def monitored(make_machine: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose GPU is held by a service; returns the file in which it notes what happens to it."""
    machine = make_machine("a100-80gb")
    machine.control("set", "0", "clients", "1")
    (tmp_path / "up").touch()
    script(tmp_path, monkeypatch, "systemctl", SYSTEMCTL.format(folder=tmp_path))
    return tmp_path / "acts"


UNITS = ["dead.service", "monitor.service"]


def test_services_that_hold_a_gpu_are_stopped_for_a_change_of_mode_only(monitored: Path, run: Run) -> None:
    assert "name its units as stop_services" in run(flavor="2x 3g.40gb")["msg"]
    assert not monitored.exists()
    assert len(run(flavor="2x 3g.40gb", stop_services=UNITS)["slices"]) == 2
    assert monitored.read_text().split() == ["stop", "start"]
    run(flavor="7x 1g.10gb", stop_services=UNITS)
    assert monitored.read_text().split() == ["stop", "start"]


def test_services_come_back_when_the_change_fails(
    monitored: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVMLSIM_FAULT", "nvmlDeviceCreateGpuInstanceWithPlacement=23")
    result = run(flavor="2x 3g.40gb", stop_services=UNITS)
    assert "Insufficient Resources" in result["msg"] and "were put back" in result["msg"]
    assert monitored.read_text().split() == ["stop", "start"]


def test_services_come_back_after_a_run_that_was_killed(monitored: Path, run: Run) -> None:
    child = os.fork()
    if not child:
        os.environ["NVMLSIM_FAULT"] = "nvmlDeviceCreateGpuInstanceWithPlacement=hang"
        run(flavor="2x 3g.40gb", stop_services=UNITS)
        os._exit(0)
    # In use, put back, and switched after the service was stopped: then the first partition is created.
    while Machine(monitored.parent).writes().count("nvmlDeviceSetMigMode") < 3:
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert monitored.read_text().split() == ["stop"]
    result = run(flavor="2x 3g.40gb")
    assert len(result["slices"]) == 2
    assert monitored.read_text().split() == ["stop", "start"]
    assert not run(flavor="2x 3g.40gb")["changed"]


def test_a_service_that_does_not_come_back_is_told(monitored: Path, run: Run, tmp_path: Path) -> None:
    command = tmp_path / "commands" / "systemctl"
    command.write_text(command.read_text().replace("echo start", "echo no >&2; exit 1; echo start"))
    assert (
        run(flavor="2x 3g.40gb", stop_services=UNITS)["msg"] == "'systemctl start monitor.service' failed: no"
    )


# two at once


def test_a_second_run_waits_and_is_refused_in_the_end(
    make_machine: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine("a100-80gb")
    too_long = pytest.raises(GpuError, match=r"more than 0\.5 seconds")
    with lock.locked(tmp_path / "run"):
        assert (tmp_path / "run" / "mig.lock").stat().st_mode & 0o777 == 0o600
    with lock.locked(tmp_path / "run"), too_long, lock.locked(tmp_path / "run", patience=0.5):
        pass
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with lock.locked(tmp_path / "run"):
            os.write(writer, b"held")
            signal.sigtimedwait([], 1)
            os.write(writer, b"free")
        os._exit(0)
    assert os.read(reader, 4) == b"held"
    assert run(check_mode=True, flavor="2x 3g.40gb")["changed"]
    assert run(flavor="2x 3g.40gb")["changed"] and machine.writes()
    os.set_blocking(reader, False)
    assert os.read(reader, 4) == b"free"  # the second run waited for it
    os.waitpid(child, 0)


# what cannot be


@pytest.mark.parametrize(
    ("models", "arguments", "said"),
    [
        (["a100-80gb"], {}, "one of the following is required: flavor, layout"),
        (["a100-80gb"], {"flavor": "None", "layout": []}, "mutually exclusive: flavor|layout"),
        (["a100-80gb"], {"flavor": "7"}, "The MIG flavor '7' is not understood"),
        (["a100-80gb"], {"layout": [{"profile": "3g"}, {"profile": "x"}]}, "Entry 2 of the MIG layout"),
        (["a100-80gb"], {"layout": [{"count": 2}]}, "missing required arguments: profile found in layout"),
        (["a100-80gb"], {"flavor": "7x 1g.5gb"}, "has no MIG profile 1g.5gb: it offers 1g.10gb (at most 7)"),
        (["a100-80gb"], {"flavor": "7x 1g"}, "has no MIG profile 1g: it offers"),
        (["a100-80gb"], {"flavor": "3x 3g.40gb"}, "the profile 3g.40gb fits on it at most 2x"),
        (["a100-80gb"], {"flavor": "2x 3g.40gb, 1x 1g.10gb"}, "that takes 9 of its 8 units of memory"),
        (["a100-80gb"], {"flavor": "2x 1g.10gb+me"}, "the profile 1g.10gb+me fits on it at most 1x"),
        (
            ["rtx-pro-6000"],
            {"flavor": "1x 1g.24gb+me.all, 1x 1g.24gb"},
            "its media engines do not suffice for all of it (decoderCount); '1x 1g.24gb+me.all' would fit",
        ),
        (["a100-80gb"], {"layout": [{"profile": "2g.20gb", "start": 6}]}, "it may start at 0, 2, 4"),
        (["a100-80gb"], {"flavor": "1x 3c.4g.40gb"}, "cannot divide 4g.40gb into 3c"),
        (["t4"], {"flavor": "7x 1g.10gb"}, "cannot be partitioned, so '7x 1g.10gb' cannot be had"),
        (["a100-80gb", "t4"], {"flavor": "2x 3g.40gb"}, "GPU 1 (Tesla T4"),
        ([], {"flavor": "7x 1g.10gb"}, "manages no GPU on this machine"),
        (["a100-80gb"], {"flavor": "7x 1g.10gb", "gpus": ["4"]}, "'4' names no GPU of this machine"),
    ],
)
def test_bad_input_changes_nothing(
    make_machine: Make, run: Run, models: list[str], arguments: dict[str, Any], said: str
) -> None:
    machine = make_machine(*models)
    result = run(**arguments)
    assert result["failed"] and said in result["msg"] and "\n" not in result["msg"]
    assert machine.writes() == []


def test_a_layout_over_a_slice_in_use_changes_nothing(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    slices = run(flavor="7x 1g.10gb")["slices"]
    machine.control("process-start", slices[9]["uuid"], "4242", "1")
    before = machine.state
    for request in ({"flavor": "2x 3g.40gb"}, {"layout": []}, {"flavor": "disabled"}):
        assert "1g.10gb at 2 is used by process (PID 4242)" in run(**request)["msg"]
    assert machine.state == before


def test_a_program_on_the_whole_gpu_keeps_its_mode(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb")
    machine.control("process-start", "0", "4242", "1")
    assert "cannot be switched on while it is used by process (PID 4242)" in run(flavor="2x 3g.40gb")["msg"]
    assert machine.writes() == []


def test_a_user_who_may_not_is_told_to_be_root(
    make_machine: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-80gb")
    monkeypatch.setenv("NVMLSIM_UID", "1000")
    assert "run this as root (become: true)" in run(flavor="2x 3g.40gb")["msg"]
    monkeypatch.setattr(mig_partition, "FOLDER", Path("/proc/gpufarm"))
    message = run(flavor="2x 3g.40gb")["msg"]
    assert "/proc/gpufarm/mig.lock cannot be opened" in message and "run this as root" in message


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "The NVIDIA driver is not installed on this machine"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "its kernel module is not loaded: run 'modprobe nvidia'"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "of different versions: reboot the machine"),
    ],
)
def test_a_driver_that_does_not_run_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(code)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert said in run(flavor="2x 3g.40gb")["msg"]


def test_a_driver_without_profiles_is_told_to_be_too_old(
    make_machine: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine("a100-80gb")

    def unknown(*_arguments: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetGpuInstanceProfileInfo", unknown)
    assert "offers no MIG profiles" in run(flavor="2x 3g.40gb")["msg"]
    assert machine.writes() == []
