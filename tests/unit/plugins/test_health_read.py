"""GPUs are read in a child process that may hang or die; DCGM and the PCI bus beside them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import child as health_child
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import dcgm
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import read as health_read
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import guard, kernel_module
from health_readings import findings_of
from simulated_machine import Machine

from lab.gpu_models import KEYS
from lab.patience import PATIENCE

Make = Callable[..., Machine]


def hang(*_arguments: Any) -> None:
    time.sleep(3600)


def read(timeout: float = PATIENCE) -> health_child.Answer:
    return health_child.read_gpus(timeout)


def test_gpus_are_read_with_what_they_tell(make_machine: Make) -> None:
    make_machine("a100-80gb", "t4")
    answer = read()
    assert (answer.error, answer.hung_in) == ("", "") and answer.driver_version
    a100, t4 = answer.gpus
    assert a100.name == "NVIDIA A100-SXM4-80GB" and a100.uuid.startswith("GPU-") and a100.failures == {}
    assert a100.values["mig"] == {"current": False, "pending": False}
    assert "mig" not in t4.values


def test_what_nvlinks_lead_to_is_read(make_machine: Make) -> None:
    machine = make_machine("a100-80gb", "a100-80gb", "h100-80gb")
    machine.simgpu("set", 1, f"nvlink_down={','.join(map(str, range(12)))}")
    first, second, h100 = read().gpus
    assert first.values["nvlink_peers"] == [second.pci_address, h100.pci_address]
    assert "nvlink_peers" not in second.values
    [switch] = h100.values["nvlink_peers"]
    assert switch not in {first.pci_address, second.pci_address, ""}


@pytest.mark.parametrize("bus_id", ["", "FFFFFFFF:FF:FF.F"])
def test_ends_of_nvlinks_without_an_address_are_left_out(
    make_machine: Make, monkeypatch: pytest.MonkeyPatch, bus_id: str
) -> None:
    make_machine("a100-80gb", "a100-80gb", "a100-80gb")
    real = pynvml.nvmlDeviceGetNvLinkRemotePciInfo
    without = SimpleNamespace(busId=bus_id)
    monkeypatch.setattr(
        pynvml, real.__name__, lambda handle, link: without if link == 0 else real(handle, link)
    )
    first, second, third = read().gpus
    assert first.hung_in == "" and findings_of(first)["gpu_responds"].status == "ok"
    assert first.values["nvlink_peers"] == [second.pci_address, third.pci_address]
    monkeypatch.setattr(pynvml, real.__name__, lambda _handle, _link: without)
    assert all(gpu.hung_in == "" and "nvlink_peers" not in gpu.values for gpu in read().gpus)


def test_reading_changes_nothing_and_leaves_no_child(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    read()
    assert machine.writes() == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_hang_is_bounded_and_named_and_the_other_gpus_are_read(
    make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-80gb", "a100-80gb")
    real = pynvml.nvmlDeviceGetPersistenceMode
    first = []

    def hang_once(handle: Any) -> Any:
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        return hang() if uuid == first[0] else real(handle)

    first.append(read().gpus[0].uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPersistenceMode", hang_once)
    hung, well = read(5).gpus
    assert hung.hung_in == "nvmlDeviceGetPersistenceMode within 5 s" and hung.uuid == first[0]
    assert well.hung_in == "" and well.values
    finding = findings_of(hung)["gpu_responds"]
    assert finding.status == "critical" and "nvmlDeviceGetPersistenceMode" in finding.detail


def test_several_gpus_that_hang_cost_one_deadline(
    make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine(*["a100-80gb"] * 4)
    uuids = [gpu.uuid for gpu in read().gpus]
    steps: list[str] = []
    expired: list[float] = []
    fork, select = os.fork, guard.select.select
    monkeypatch.setattr(os, "fork", lambda: steps.append("start") or fork())

    def wait(sources: list[int], _w: Any, _x: Any, seconds: float) -> Any:
        steps.append("wait")
        found = select(sources, [], [], seconds)
        if not found[0]:
            expired.append(seconds)
        return found

    monkeypatch.setattr(guard.select, "select", wait)
    real = pynvml.nvmlDeviceGetPersistenceMode
    monkeypatch.setattr(
        pynvml,
        "nvmlDeviceGetPersistenceMode",
        lambda handle: real(handle) if pynvml.nvmlDeviceGetUUID(handle) == uuids[2] else hang(),
    )
    gpus = health_child.read_gpus(4, total=6).gpus
    assert [bool(gpu.hung_in) for gpu in gpus] == [True, True, False, True]
    assert [gpu.uuid for gpu in gpus] == uuids and gpus[2].values
    assert "nvmlDeviceGetPersistenceMode within 6 s for all GPUs" in {gpu.hung_in for gpu in gpus}
    assert len(expired) == 3 and sum(expired) <= 6
    # The last child is started before the first is waited for.
    last = len(steps) - steps[::-1].index("start")
    assert steps[last - 4 : last] == ["start"] * 4
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_driver_that_hangs_at_once_is_told(make_machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make_machine("a100-80gb")
    monkeypatch.setattr(pynvml, "nvmlInit", hang)
    assert read(5).hung_in == "nvmlInit within 5 s"


def test_a_library_that_crashes_is_told(make_machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make_machine("a100-80gb")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetVbiosVersion", lambda _handle: os.abort())
    gpu = read().gpus[0]
    assert gpu.hung_in == "nvmlDeviceGetVbiosVersion (its process ended with code -6)"


def test_a_driver_that_is_not_loaded_is_told(make_machine: Make) -> None:
    make_machine("a100-80gb").simgpu("driver", "unload")
    assert "kernel module is not loaded" in read().error


def test_a_gpu_that_is_lost_is_told_beside_the_others(make_machine: Make) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    machine.simgpu("set", 1, "lost=1")
    well, lost = read().gpus
    assert findings_of(well)["gpu_responds"].status == "ok"
    assert findings_of(lost)["gpu_responds"].status == "critical"


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("temperature=95", "temperature"),
        ("ecc_uncorrected=3", "ecc_uncorrected"),
        ("remap_failure=1", "row_remap_failed"),
        ("remap_pending=1", "row_remap_pending"),
        ("pcie_width=8", "pcie_width"),
        ("persistence=0", "persistence"),
        ("recovery_action=2", "recovery_action"),
        ("ecc=off", "ecc_mode"),
        ("throttle=hw_slowdown", "throttling"),
        ("nvlink_down=0", "nvlink_state"),
    ],
)
def test_what_is_wrong_with_a_gpu_is_found(make_machine: Make, fault: str, check: str) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("set", 0, "persistence=1")
    assert findings_of(read().gpus[0])[check].status == "ok"
    machine.simgpu("set", 0, fault)
    bad = {name for name, one in findings_of(read().gpus[0]).items() if one.status not in ("ok", "skipped")}
    assert bad == {check}


@pytest.mark.parametrize("model", KEYS)
def test_a_healthy_gpu_of_any_model_is_left_without_a_finding(make_machine: Make, model: str) -> None:
    make_machine(model).simgpu("set", 0, "persistence=1")
    found = findings_of(read().gpus[0])
    assert {name: one.detail for name, one in found.items() if one.status not in ("ok", "skipped")} == {}


def test_a_card_that_retires_pages_is_checked_by_them(make_machine: Make) -> None:
    machine = make_machine("t4")
    machine.simgpu("set", 0, "persistence=1")
    assert findings_of(read().gpus[0])["row_remap_count"].status == "skipped"
    machine.simgpu("set", 0, "retired_double=64")
    assert findings_of(read().gpus[0])["retired_pages"].status == "critical"


# the kernel


@pytest.mark.parametrize(
    ("line", "module"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025",
            ("550.163.01", "proprietary"),
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs)",
            ("570.86.15", "open"),
        ),
        ("something else", ("", "")),
    ],
)
def test_the_kernel_module_is_told(line: str, module: tuple[str, str]) -> None:
    found = kernel_module.parse_version(f"{line}\nGCC version:  gcc version 12.2.0\n")
    assert (found.version, found.kind) == module


def test_gpus_on_the_bus_are_counted(tmp_path: Path) -> None:
    for name, vendor, kind in (
        ("a", "0x10de", "0x030200"),
        ("b", "0x10de", "0x030000"),
        ("c", "0x10de", "0x068000"),  # an NVSwitch
        ("d", "0x1a03", "0x030000"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert health_read._pci_gpus(tmp_path) == 2


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[Any, str]:
    program(tmp_path, "journalctl", text)
    monkeypatch.setenv("PATH", str(tmp_path))
    return health_read._events()


def test_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = '{"MESSAGE": "NVRM: Xid (PCI:0000:07:00): 79, x", "__MONOTONIC_TIMESTAMP": "7"}'
    events, error = journal(tmp_path, monkeypatch, f"echo '{line}'")
    assert [event.code for event in events] == [79] and error == ""


@pytest.mark.parametrize("separator", ["\u2028", "\u2029"])
def test_a_user_cannot_break_the_log_by_the_name_of_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str
) -> None:
    """The kernel names the program that crashes, and journalctl writes these characters as they are."""
    crash = f'{{"MESSAGE": "{separator}x[9]: segfault at 0", "__MONOTONIC_TIMESTAMP": "6"}}'
    error = '{"MESSAGE": "NVRM: Xid (PCI:0000:07:00): 79, x", "__MONOTONIC_TIMESTAMP": "7"}'
    events, problem = journal(tmp_path, monkeypatch, f"echo '{crash}'; echo '{error}'")
    assert [event.code for event in events] == [79] and problem == ""


def test_a_log_that_fails_is_an_error_and_one_that_is_empty_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert journal(tmp_path, monkeypatch, "echo broken >&2; exit 1") == (
        None,
        "The kernel's log cannot be read: broken.",
    )
    assert journal(tmp_path, monkeypatch, "exit 0") == (None, "")
    (tmp_path / "journalctl").unlink()
    assert "journalctl cannot be run" in health_read._events()[1]


def test_only_messages_of_the_kernel_are_asked_for() -> None:
    assert health_read.JOURNAL[-1] == "_TRANSPORT=kernel"


def test_a_machine_is_read_as_a_whole(make_machine: Make) -> None:
    make_machine("a100-80gb")
    machine = health_read.read_machine(Settings(), Baseline())
    assert len(machine.gpus) == 1 and machine.boot_id and machine.now > 0


# DCGM, played by a script that answers as dcgmi does

HEALTHY = '{"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Health Monitor Report"]}'
SICK = """{"body": {"GPU": {"children": {"0": {"children": {"Errors": {"children": {"Memory system":
 {"children": {"0": {"value": "volatile double-bit errors"}}, "value": "Failure"}}}}, "value": "Failure"}}},
 "Overall Health": {"value": "Failure"}}, "header": ["Health Monitor Report"]}"""


def diagnosis(status: str, warnings: str = "[]") -> str:
    return (
        '{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory",'
        f' "results": [{{"entity_group": "GPU", "status": "{status}", "warnings": {warnings}}}]}}]}}]}}}}'
    )


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (HEALTHY, "ok"),
        (SICK, "critical"),
        ("Error: Health watches not enabled. Please enable watches.", "skipped"),
        ("Error: unable to establish a connection", "unknown"),
    ],
)
def test_dcgm_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: str) -> None:
    program(tmp_path, "dcgmi", f"/bin/cat <<'END'\n{answer}\nEND")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [one.status for one in dcgm.ask()] == [status]


def test_the_host_engine_of_the_role_is_asked_at_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "dcgmi", f"[ \"$3\" = unix://here ] || exit 1\n/bin/cat <<'END'\n{HEALTHY}\nEND")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dcgm, "HOST", "unix://here")
    monkeypatch.setattr(dcgm, "SOCKET", str(tmp_path / "socket"))
    assert [one.status for one in dcgm.ask()] == ["unknown"]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert [one.status for one in dcgm.ask()] == ["ok"]


def test_dcgm_that_is_not_there_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [one.status for one in dcgm.ask(2)] == ["skipped"]


def test_dcgm_that_hangs_is_critical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "dcgmi", "exec /bin/sleep 3600")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dcgm, "HEALTH_TIMEOUT", 0.2)
    assert [one.status for one in dcgm.ask()] == ["critical"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (diagnosis("Pass"), "ok"),
        (diagnosis("Skip"), "ok"),
        (diagnosis("Warn"), "warning"),
        (diagnosis("Fail"), "critical"),
        (diagnosis("Fail", '[{"error_severity": 6}]'), "critical"),
        (diagnosis("Fail", '[{"error_severity": 5, "warning": "Persistence mode"}]'), "warning"),
    ],
)
def test_a_diagnostic_is_read(answer: str, status: str) -> None:
    assert dcgm.parse_diag(answer).status == status
