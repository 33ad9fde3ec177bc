"""Readings of NVML become slices, and slices become device nodes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from gpufarm_hub.sharing import devices, slices
from gpufarm_hub.sharing.health import Verdicts
from gpufarm_hub.sharing.slices import GpuQueryError, Slice, read_gpus

from lab.patience import PATIENCE


class FakeNvml:
    """Two GPUs: one in MIG mode with a gap in its list of devices, one that knows no MIG."""

    NVMLError = pynvml.NVMLError
    NVMLError_NotFound = pynvml.NVMLError_NotFound
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVML_DEVICE_MIG_ENABLE = pynvml.NVML_DEVICE_MIG_ENABLE

    def __init__(self, failing: str = "", code: int = pynvml.NVML_ERROR_UNKNOWN) -> None:
        self.failing, self.code, self.open = failing, code, 0
        self.lost: str | None = None
        self.hangs = threading.Event()
        self.hangs.set()
        self.remap_failed: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name == object.__getattribute__(self, "failing"):
            raise pynvml.NVMLError(object.__getattribute__(self, "code"))
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return ("a100", "t4")[index]

    def nvmlDeviceGetMinorNumber(self, device: str) -> int:
        if device == self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return {"a100": 0, "t4": 1}[device]

    def nvmlDeviceGetRemappedRows(self, device: str) -> tuple[int, int, int, int]:
        if device == "t4":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 0, 0, 0, int(device in self.remap_failed)

    def nvmlDeviceGetMigMode(self, device: str) -> list[int]:
        if device == "a100":
            self.hangs.wait()
        if device == "t4":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: str, index: int) -> str:
        if index not in (0, 2):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"mig{index}"

    def nvmlDeviceGetUUID(self, device: str) -> str:
        return {"a100": "GPU-a100", "t4": "GPU-t4", "mig0": "MIG-0", "mig2": "MIG-2"}[device]

    def nvmlDeviceGetName(self, device: str) -> str:
        return {"t4": "Tesla T4", "mig0": "NVIDIA A100-SXM4-80GB MIG 3g.40gb"}.get(
            device, "NVIDIA A100-SXM4-80GB MIG 1g.10gb+me"
        )

    def nvmlDeviceGetGpuInstanceId(self, device: str) -> int:
        return {"mig0": 1, "mig2": 9}[device]

    def nvmlDeviceGetComputeInstanceId(self, device: str) -> int:
        return 0

    def nvmlDeviceGetMemoryInfo(self, device: str) -> SimpleNamespace:
        return SimpleNamespace(total={"t4": 16, "mig0": 40, "mig2": 10}[device] << 30)


def test_mig_devices_and_whole_gpus() -> None:
    nvml = FakeNvml()
    assert read_gpus(nvml).offered == [
        Slice("MIG-0", "3g.40gb", 0, 1, 0, 40 << 30),
        Slice("MIG-2", "1g.10gb+me", 0, 9, 0, 10 << 30),
        Slice("GPU-t4", "Tesla T4", 1, None, None, 16 << 30),
    ]
    assert nvml.open == 0


@pytest.mark.parametrize(
    "failing", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetUUID", "nvmlDeviceGetMigMode"]
)
def test_a_query_that_fails_is_an_error_and_not_an_empty_list(failing: str) -> None:
    nvml = FakeNvml(failing)
    with pytest.raises(GpuQueryError, match="the NVIDIA driver does not answer"):
        read_gpus(nvml)
    assert nvml.open == 0


T4 = Slice("GPU-t4", "Tesla T4", 1, None, None, 16 << 30)
GONE = Slice("MIG-5", "1g.10gb", 0, 5, 0, 10 << 30)


def test_a_gpu_that_is_lost_hides_no_other() -> None:
    nvml = FakeNvml()
    nvml.lost = "a100"
    found = read_gpus(nvml)
    assert found.offered == [T4] and nvml.open == 0
    assert found.problems[0].startswith("GPU 0 does not answer: ")
    assert not found.is_gone(GONE), "nobody knows"
    assert found.is_gone(replace(T4, uuid="GPU-other"))


def test_a_gpu_that_hangs_hides_no_other_and_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "PATIENCE", 0.1)
    nvml = FakeNvml()
    nvml.hangs.clear()
    for _ in range(3):
        found = read_gpus(nvml)
        assert found.offered == [T4] and "GPU 0 does not answer within 0.1 seconds" in found.problems
    assert nvml.open == 1, "one question is open, not three"
    nvml.hangs.set()
    end = time.monotonic() + PATIENCE
    while nvml.open and time.monotonic() < end:
        time.sleep(0.01)
    found = read_gpus(nvml)
    assert len(found.slices) == 3 and not found.problems and found.is_gone(GONE)


def test_slices_of_a_gpu_with_broken_memory_are_there_and_given_to_nobody() -> None:
    nvml = FakeNvml()
    nvml.remap_failed = ["a100"]
    found = read_gpus(nvml)
    assert found.offered == [T4] and len(found.slices) == 3
    assert found.problems == ("GPU 0 could not remap a bad row of its memory; replace it",)
    assert found.all_answered and not any(map(found.is_gone, found.slices))


def test_slices_of_a_gpu_that_is_not_well_are_there_and_given_to_nobody() -> None:
    critical = {"GPU-a100": "temperature: 91 °C", "GPU-of-another-machine": "xid: 79"}
    found = read_gpus(FakeNvml(), lambda: Verdicts(critical))
    assert found.offered == [T4] and len(found.withheld) == 2
    assert found.problems == ("GPU 0 is not fit for work: temperature: 91 °C",)
    assert found.all_answered and not any(map(found.is_gone, found.slices))
    assert read_gpus(FakeNvml(), lambda: Verdicts(unknown="it is old")).withheld == []


def test_a_gpu_that_is_not_well_and_one_that_is_lost() -> None:
    nvml = FakeNvml()
    nvml.lost = "a100"
    found = read_gpus(nvml, lambda: Verdicts({"GPU-t4": "xid: 48"}))
    assert found.offered == [] and found.withheld == [T4]
    assert len(found.problems) == 2 and not found.all_answered


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
    """/proc/driver/nvidia/capabilities and /dev, as the driver shows GPU instance 7 of GPU 0."""
    capabilities, dev = tmp_path / "capabilities", tmp_path / "dev"
    instance = capabilities / "gpu0" / "mig" / "gi7"
    (instance / "ci0").mkdir(parents=True)
    for path, minor in ((instance / "access", 66), (instance / "ci0" / "access", 67)):
        path.write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    (dev / "nvidia-caps").mkdir(parents=True)
    for name in (
        "nvidiactl",
        "nvidia0",
        "nvidia1",
        "nvidia-uvm",
        "nvidia-caps/nvidia-cap66",
        "nvidia-caps/nvidia-cap67",
    ):
        (dev / name).touch()
    return capabilities, dev


def names(nodes: list[devices.DeviceNode], dev: Path) -> list[str]:
    return [f"{node.path.relative_to(dev)} {node.access}" for node in nodes]


SEVENTH = Slice("MIG-7", "1g.10gb", 0, 7, 0, 10 << 30)


def test_nodes_of_a_mig_device(machine: tuple[Path, Path]) -> None:
    assert names(devices.nodes_of(SEVENTH, *machine), machine[1]) == [
        "nvidiactl rw",
        "nvidia0 rw",
        "nvidia-uvm rw",
        "nvidia-caps/nvidia-cap66 r",
        "nvidia-caps/nvidia-cap67 r",
    ]


def test_nodes_of_a_whole_gpu(machine: tuple[Path, Path]) -> None:
    (machine[1] / "nvidia-uvm-tools").touch()
    whole = Slice("GPU-1", "Tesla T4", 1, None, None, 16 << 30)
    assert names(devices.nodes_of(whole, *machine), machine[1]) == [
        "nvidiactl rw",
        "nvidia1 rw",
        "nvidia-uvm rw",
        "nvidia-uvm-tools rw",
    ]


def test_a_missing_node_is_made(machine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    capabilities, dev = machine
    node = dev / "nvidia-caps" / "nvidia-cap67"
    node.unlink()
    access = capabilities / "gpu0" / "mig" / "gi7" / "ci0" / "access"

    def modprobe(command: list[str], **options: Any) -> None:
        assert command == ["nvidia-modprobe", "-f", str(access)]
        node.touch()

    monkeypatch.setattr(subprocess, "run", modprobe)
    assert f"{node.relative_to(dev)} r" in names(devices.nodes_of(SEVENTH, *machine), dev)


def test_a_node_that_cannot_be_made_is_named(
    machine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DeviceAllow= says nothing about a node that is not there, so the hub must."""
    (machine[1] / "nvidia-caps" / "nvidia-cap66").unlink()
    monkeypatch.setattr(subprocess, "run", lambda command, **options: None)
    with pytest.raises(devices.DeviceError, match="nvidia-cap66; is nvidia-modprobe installed"):
        devices.nodes_of(SEVENTH, *machine)


def test_a_slice_that_the_driver_does_not_know(machine: tuple[Path, Path]) -> None:
    with pytest.raises(devices.DeviceError, match="gi9"):
        devices.nodes_of(Slice("MIG-9", "1g.10gb", 0, 9, 0, 1), *machine)
