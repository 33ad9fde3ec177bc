"""Use of GPUs and slices as metrics: what is told, who holds slices, and what a silent driver leads to."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.gpu import (
    GpuUse,
    Holder,
    SliceUse,
    Use,
    render,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.io import command as metrics_command
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.io.read import (
    _slices,
    read_certificates,
    read_gpus,
    read_holders,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._metrics.io.utilization import WINDOW
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.readings import Reader
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from simulated_machine import Machine

TAKEN = "2026-01-02T03:04:05+00:00"
SINCE = 1767323045.0


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the values by name and the values of the labels but the UUID."""
    return {
        (one.name, tuple(value for key, value in sorted(one.labels.items()) if key != "uuid")): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def lease(folder: Path, uuid: str, owner: str = "alice/") -> Path:
    path = folder / "leases.json"
    entry = {"unit": "x", "slices": [{"uuid": uuid}], "taken": TAKEN, "share": "everybody"}
    path.write_text(json.dumps({"leases": {owner: entry}}))
    return path


def partition(parts: int = 1) -> str:
    """Make one GPU instance of the first GPU and slices of it; return the UUID of the first slice."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceSetMigMode(handle, 1)
    profile = getattr(pynvml, f"NVML_GPU_INSTANCE_PROFILE_{parts}_SLICE")
    offer = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, profile)
    instance = pynvml.nvmlDeviceCreateGpuInstance(handle, offer.id)
    inner = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 0, 0)
    for _part in range(parts):
        pynvml.nvmlGpuInstanceCreateComputeInstance(instance, inner.id)
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, 0))
    pynvml.nvmlShutdown()
    return str(uuid)


def test_a_slice_tells_its_memory_its_processes_and_its_holder(
    make_machine: Callable[..., Machine], tmp_path: Path
) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    uuid = partition()
    machine.simgpu("process", "start", "--slice", uuid, "--memory", 512, "--pid", 4242)
    gpus, problem, stuck = read_gpus(5, {})
    assert (problem, stuck) == ("", {})
    holders, holders_problem = read_holders(lease(tmp_path, uuid, "alice/work"))
    assert holders_problem == ""
    told = samples(render(Use(gpus, holders=holders), 1.0))
    assert told["gpufarm_slice_processes", ("0", "1g.10gb")] == 1
    assert told["gpufarm_slice_memory_used_bytes", ("0", "1g.10gb")] >= 512 << 20
    assert told["gpufarm_slice_memory_total_bytes", ("0", "1g.10gb")] > 9 << 30
    assert told["gpufarm_slice_holder", ("0", "1g.10gb", "work", "alice")] == 1
    assert told["gpufarm_slice_held_since_timestamp_seconds", ("0", "1g.10gb")] == SINCE
    # NVML tells no utilization of slices before Hopper, nor of a GPU that is divided.
    assert not [key for key in told if key[0].endswith("utilization_ratio") and key[1][0] == "0"]
    # The other GPU is not divided, so it is a slice as a whole.
    assert told["gpufarm_slice_processes", ("1", "NVIDIA A100-SXM4-80GB")] == 0
    assert ("gpufarm_gpu_utilization_ratio", ("1",)) in told
    assert told["gpufarm_gpu_metrics_up", ("nvml",)] == 1


class Performance:
    """NVML's performance monitoring, as an H200 answers, of GPU instances that all compute as much."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, share: float, result: int = pynvml.NVML_SUCCESS
    ) -> None:
        self.share, self.result, self.held = share, result, 0
        self.taken: list[tuple[int, float]] = []
        for name in ("QueryDeviceSupport", "SampleAlloc", "SampleFree", "MigSampleGet", "MetricsGet"):
            monkeypatch.setattr(pynvml, f"nvmlGpm{name}", getattr(self, name))

    def QueryDeviceSupport(self, device: Any) -> Any:
        return pynvml.c_nvmlGpmSupport_t(version=1, isSupportedDevice=1)

    def SampleAlloc(self) -> Any:
        self.held += 1
        return pynvml.c_nvmlGpmSample_t()

    def SampleFree(self, sample: Any) -> None:
        self.held -= 1

    def MigSampleGet(self, device: Any, instance: int, sample: Any) -> Any:
        self.taken.append((instance, time.monotonic()))
        return sample

    def MetricsGet(self, request: Any) -> Any:
        assert (request.version, request.numMetrics) == (pynvml.NVML_GPM_METRICS_GET_VERSION, 1)
        metric = request.metrics[0]
        assert metric.metricId == pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
        metric.nvmlReturn, metric.value = self.result, self.share
        return request


def slice_use(parts: int = 1) -> SliceUse:
    """Partition the GPU of the machine and return the use of its first slice."""
    uuid = partition(parts)
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    found = {one["uuid"]: SliceUse(**one) for one in _slices(Reader(), handle)}
    pynvml.nvmlShutdown()
    return found[uuid]


def test_a_slice_of_a_new_gpu_tells_its_utilization(
    make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("h200-141gb")
    monitoring = Performance(monkeypatch, 62.5)
    one = slice_use()
    assert one.values["utilization"] == 62.5
    (first, begin), (second, end) = monitoring.taken
    assert first == second and end - begin >= WINDOW
    assert monitoring.held == 0
    told = samples(render(Use((GpuUse(0, "GPU-1", "H200", {}, (one,)),)), 1.0))
    assert told["gpufarm_slice_utilization_ratio", ("0", one.profile)] == 0.625


@pytest.mark.parametrize(
    ("share", "result"),
    [(0.0, pynvml.NVML_ERROR_UNINITIALIZED), (float("nan"), pynvml.NVML_SUCCESS)],
)
def test_a_utilization_that_is_not_known_is_left_out(
    make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch, share: float, result: int
) -> None:
    make_machine("h200-141gb")
    Performance(monkeypatch, share, result)
    assert "utilization" not in slice_use().values


def test_slices_that_share_an_instance_tell_no_utilization(
    make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("h200-141gb")
    monitoring = Performance(monkeypatch, 50)
    assert "utilization" not in slice_use(2).values
    assert monitoring.taken == []


def test_a_slice_without_the_right_to_its_utilization_tells_the_rest(
    make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)

    make_machine("h200-141gb")
    monitoring = Performance(monkeypatch, 50)
    monkeypatch.setattr(pynvml, "nvmlGpmMigSampleGet", refuse)
    assert "memory" in (values := slice_use().values) and "utilization" not in values
    assert monitoring.held == 0


def test_a_gpu_tells_its_board(make_machine: Callable[..., Machine]) -> None:
    machine = make_machine("h100-80gb")
    machine.simgpu("set", "0", "temperature=71", "ecc_uncorrected=3")
    told = samples(render(Use(read_gpus(5, {})[0]), 1.0))
    assert told["gpufarm_gpu_temperature_celsius", ("0",)] == 71
    assert told["gpufarm_gpu_ecc_errors_total", ("0", "uncorrected")] == 3
    assert 10 < told["gpufarm_gpu_power_watts", ("0",)] < told["gpufarm_gpu_power_limit_watts", ("0",)] < 2000
    assert told["gpufarm_gpu_clock_hertz", ("0", "sm")] > 1e8


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (("driver", "unload"), "kernel module is not loaded"),
        (
            ("fault", "add", "nvmlDeviceGetTemperature", "hang"),
            "not return from nvmlDeviceGetTemperature",
        ),
    ],
)
def test_a_driver_that_does_not_answer_is_told(
    make_machine: Callable[..., Machine], fault: tuple[str, ...], said: str
) -> None:
    make_machine("a100-80gb").simgpu(*fault)
    gpus, problem, _stuck = read_gpus(0.5, {})
    assert said in problem
    assert samples(render(Use(gpus, problem), 1.0))["gpufarm_gpu_metrics_up", ("nvml",)] == 0


def test_a_gpu_whose_driver_hangs_holds_up_no_other(
    make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-80gb", "a100-80gb", "a100-80gb")
    second = read_gpus(5, {})[0][1].uuid
    real = pynvml.nvmlDeviceGetTemperature

    def hang(handle: Any, *arguments: Any) -> Any:
        if pynvml.nvmlDeviceGetUUID(handle) == second:
            time.sleep(3600)
        return real(handle, *arguments)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperature", hang)
    gpus, problem, _stuck = read_gpus(2, {})
    assert [one.index for one in gpus] == [0, 2]
    assert problem == "The driver did not return from nvmlDeviceGetTemperature of GPU 1 within 2 s."
    # A process that cannot be ended is joined by no other, and hides no other GPU.
    gpus, problem, stuck = read_gpus(2, {1: "7 70"})
    assert [one.index for one in gpus] == [0, 2]
    assert problem == "The driver of GPU 1 still holds process 7 of an earlier run; reboot the machine."
    assert stuck == {}


def test_no_leases_are_nobody_and_damaged_ones_a_problem(tmp_path: Path) -> None:
    assert read_holders(tmp_path / "none.json") == ({}, "")
    for text in ("{", "[]", '{"leases": {"alice/": {}}}', '{"leases": 1}'):
        (tmp_path / "bad.json").write_text(text)
        holders, problem = read_holders(tmp_path / "bad.json")
        assert holders == {} and "cannot be read" in problem, text


def test_certificates_tell_their_end(tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", str(tmp_path / "key.pem"), "-out", str(path), "-days", "3", "-subj", "/CN=x"]
    subprocess.run(command, check=True, capture_output=True)
    found = read_certificates({"hub": str(path), "none": str(tmp_path / "none.pem")})
    assert list(found) == ["hub"]
    assert 2.9 * 86400 < found["hub"] - path.stat().st_mtime < 3.1 * 86400


@pytest.mark.parametrize("before", ["", "7 70", "[[1]]", '[["a", 3]]', None])
def test_processes_that_hang_are_remembered_while_they_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: str | None,
) -> None:
    asked: list[dict[int | None, str]] = []
    still = {"7 70", "8 80"}
    new: list[dict[int | None, str]] = [{1: "7 70"}, {None: "8 80"}, {}, {}]

    def read(_timeout: float, held: dict[int | None, str]) -> tuple[tuple[()], str, dict[int | None, str]]:
        asked.append(dict(held))
        return (), "It hangs.", new.pop(0)

    monkeypatch.setattr(metrics_command, "read_gpus", read)
    monkeypatch.setattr(metrics_command, "is_stuck", lambda identity: identity in still)
    settings: dict[str, Any] = {"gpus": True, "call_timeout": 5, "certificates": {}}
    settings |= {name: str(tmp_path / name) for name in ("textfile", "leases", "stuck_file")}
    if before is not None:
        (tmp_path / "stuck_file").write_text(before)
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    monkeypatch.setattr(sys, "argv", ["gpufarm-metrics", str(tmp_path / "settings.json")])
    assert [metrics_command.main() for _ in range(3)] == [1, 1, 1]
    still.remove("7 70")
    metrics_command.main()
    assert asked == [{}, {1: "7 70"}, {1: "7 70", None: "8 80"}, {None: "8 80"}]
    assert "It hangs." in capsys.readouterr().err
    assert samples((tmp_path / "textfile").read_text())["gpufarm_gpu_metrics_up", ("nvml",)] == 0


def test_a_driver_that_holds_a_process_before_any_gpu_is_not_asked(
    make_machine: Callable[..., Machine],
) -> None:
    make_machine("a100-80gb")
    assert read_gpus(5, {None: "7 70"}) == (
        (),
        "The driver still holds process 7 of an earlier run; reboot the machine.",
        {},
    )


def test_several_holders_of_a_slice_have_equal_parts(tmp_path: Path) -> None:
    path = lease(tmp_path, "MIG-1", "alice/work")
    content = json.loads(path.read_text())
    content["leases"]["bob/"] = {**content["leases"]["alice/work"], "taken": "2026-01-02T03:04:00+00:00"}
    path.write_text(json.dumps(content))
    holders, problem = read_holders(path)
    assert problem == ""
    one = SliceUse("MIG-1", "1g.10gb", {})
    told = samples(render(Use((GpuUse(0, "GPU-1", "model", {}, (one,)),), holders=holders), 1.0))
    assert told["gpufarm_slice_holder", ("0", "1g.10gb", "work", "alice")] == 0.5
    assert told["gpufarm_slice_holder", ("0", "1g.10gb", "", "bob")] == 0.5
    assert told["gpufarm_slice_held_since_timestamp_seconds", ("0", "1g.10gb")] == SINCE - 5


@given(st.text(), st.text(min_size=1), st.floats(0, 1e12))
def test_any_name_can_be_read_back(user: str, profile: str, since: float) -> None:
    one = SliceUse("MIG-1", profile, {"memory": {"used_mib": 3}})
    use = Use((GpuUse(0, "GPU-1", "model", {}, (one,)),), holders={"MIG-1": [Holder(user, "", since)]})
    # The parser of prometheus_client takes other line ends than the format's for line ends, too.
    if not {"\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"} & set(user + profile):
        told = samples(render(use, 1.0))
        assert told["gpufarm_slice_holder", ("0", profile, "", user)] == 1
