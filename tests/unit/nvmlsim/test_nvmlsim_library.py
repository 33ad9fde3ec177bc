# SPDX-License-Identifier: GPL-3.0-or-later
"""The library around the rules: layouts, driver, call log, faults, many processes, crashes, other users."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host, in_child

from lab.nvmlsim import build
from lab.nvmlsim.build import SOURCE

NOBODY = 65534

LAYOUTS = {
    "placement": n.c_nvmlGpuInstancePlacement_t,
    "gpu_instance_profile_v1": n.c_nvmlGpuInstanceProfileInfo_t,
    "gpu_instance_profile_v2": n.c_nvmlGpuInstanceProfileInfo_v2_t,
    "gpu_instance_info": n.c_nvmlGpuInstanceInfo_t,
    "compute_instance_profile_v1": n.c_nvmlComputeInstanceProfileInfo_t,
    "compute_instance_profile_v2": n.c_nvmlComputeInstanceProfileInfo_v2_t,
    "compute_instance_info": n.c_nvmlComputeInstanceInfo_t,
    "device_attributes": n.c_nvmlDeviceAttributes,
    "pci_info": n.nvmlPciInfo_t,
    "pci_info_ext": n.nvmlPciInfoExt_v1_t,
    "memory_v1": n.c_nvmlMemory_t,
    "memory_v2": n.c_nvmlMemory_v2_t,
    "process_info": n.c_nvmlProcessInfo_v2_t,
    "utilization": n.c_nvmlUtilization_t,
    "temperature_v1": n.c_nvmlTemperature_v1_t,
    "margin_temperature_v1": n.c_nvmlMarginTemperature_v1_t,
    "row_remapper_histogram": n.c_nvmlRowRemapperHistogramValues,
    "sram_ecc_status_v1": n.c_nvmlEccSramErrorStatus_v1_t,
    "fabric_info_v1": n.c_nvmlGpuFabricInfo_t,
    "fabric_info_v2": n.c_nvmlGpuFabricInfo_v2_t,
    "fabric_info_v3": n.c_nvmlGpuFabricInfo_v3_t,
    "field_value": n.c_nvmlFieldValue_t,
    "event_data": n.c_nvmlEventData_t,
}
# One field far inside each struct that has a hole or a string, to compare offsets.
OFFSETS = {
    ("gpu_instance_profile_v2", "memory_mib"): "memorySizeMB",
    ("gpu_instance_profile_v2", "name"): "name",
    ("gpu_instance_info", "place"): "placement",
    ("compute_instance_profile_v2", "name"): "name",
    ("compute_instance_info", "place"): "placement",
    ("device_attributes", "memory_mib"): "memorySizeMB",
    ("pci_info", "bus_id"): "busId",
    ("memory_v2", "total"): "total",
    ("process_info", "gpu_instance"): "gpuInstanceId",
    ("sram_ecc_status_v1", "volatile_parity"): "volatileUncParity",
    ("sram_ecc_status_v1", "aggregate_microcontroller"): "aggregateUncBucketMcu",
    ("sram_ecc_status_v1", "threshold_exceeded"): "bThresholdExceeded",
    ("fabric_info_v2", "state"): "state",
    ("fabric_info_v3", "summary"): "healthSummary",
    ("field_value", "result"): "nvmlReturn",
    ("field_value", "value"): "value",
    ("event_data", "gpu_instance"): "gpuInstanceId",
}


def test_layouts_are_those_of_the_binding(tmp_path: Path) -> None:
    lines = [f'printf("%zu\\n", sizeof({name}));' for name in LAYOUTS]
    lines += [f'printf("%zu\\n", offsetof({name}, {field}));' for name, field in OFFSETS]
    source = tmp_path / "layouts.c"
    head = '#include <stddef.h>\n#include <stdio.h>\n#include "abi.h"\nint main(void) {\n'
    source.write_text(head + "\n".join(lines) + "\nreturn 0; }\n")
    program = tmp_path / "layouts"
    subprocess.run(["gcc", f"-I{SOURCE}", "-o", str(program), str(source)], check=True)
    printed = [int(line) for line in subprocess.check_output([str(program)], text=True).split()]
    expected = [ctypes.sizeof(struct) for struct in LAYOUTS.values()]
    expected += [getattr(LAYOUTS[name], field).offset for (name, _), field in OFFSETS.items()]
    assert printed == expected


def test_a_struct_of_an_unknown_version_is_refused(a100: Host) -> None:
    info = n.c_nvmlGpuInstanceProfileInfo_v2_t()
    info.version = 0x07000098
    call = n._nvmlGetFunctionPointer("nvmlDeviceGetGpuInstanceProfileInfoV")
    assert call(sim_nvml.gpu(), 0, ctypes.byref(info)) == n.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_every_function_of_the_binding_exists(make_host: Callable[..., Host]) -> None:
    make_host("a30")
    assert sim_nvml.code(n.nvmlDeviceGetBridgeChipInfo, sim_nvml.gpu()) == n.NVML_ERROR_NOT_SUPPORTED


def test_a_second_build_is_taken_from_the_cache(library: Path) -> None:
    before = library.stat().st_mtime_ns
    assert build(library.parent.parent) == library
    assert library.stat().st_mtime_ns == before


# ---- driver ----


def test_nothing_works_before_init_and_without_a_driver(make_host: Callable[..., Host]) -> None:
    host = make_host("a30")
    n.nvmlShutdown()
    assert sim_nvml.code(n.nvmlDeviceGetCount) == n.NVML_ERROR_UNINITIALIZED
    host.simgpu("driver", "unload")
    assert sim_nvml.code(n.nvmlInit) == n.NVML_ERROR_DRIVER_NOT_LOADED
    host.simgpu("driver", "load")
    n.nvmlInit()
    assert n.nvmlDeviceGetCount() == 1


def test_unloading_the_driver_costs_hopper_its_mode(make_host: Callable[..., Host]) -> None:
    host = make_host("a100-80gb", "h100-80gb")
    for i in range(2):
        n.nvmlDeviceSetMigMode(sim_nvml.gpu(i), 1)
        sim_nvml.create(sim_nvml.gpu(i), 9)
    host.simgpu("set", 0, "clients=1")
    assert "GPU 0 is in use" in host.simgpu("driver", "unload", check=False).stderr
    host.simgpu("set", 0, "clients=0")
    host.simgpu("driver", "unload")
    host.simgpu("driver", "load")
    assert [n.nvmlDeviceGetMigMode(sim_nvml.gpu(i)) for i in range(2)] == [[1, 1], [0, 0]]
    assert sim_nvml.instances(sim_nvml.gpu(0)) == []


def test_the_driver_has_the_version_that_was_set(make_host: Callable[..., Host]) -> None:
    make_host("a30").simgpu("set", "host", "driver=535.261.03", "cuda=12020")
    assert n.nvmlSystemGetDriverVersion() == "535.261.03"
    assert n.nvmlSystemGetNVMLVersion() == "12.535.261.03"
    assert n.nvmlSystemGetCudaDriverVersion() == 12020


def test_a_library_that_is_not_the_modules_does_not_start(make_host: Callable[..., Host]) -> None:
    host = make_host("a30")
    host.set("host", "kernel_driver=535.261.03")
    assert sim_nvml.code(n.nvmlInit) == n.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    assert "driver 550.163.01, loaded, module 535.261.03" in host.simgpu("status").stdout
    host.control("boot")
    n.nvmlInit()


def test_a_lost_gpu_says_so(make_host: Callable[..., Host]) -> None:
    host = make_host("a30:2")
    device = sim_nvml.gpu(1)
    host.simgpu("set", 1, "lost=1")
    assert sim_nvml.code(n.nvmlDeviceGetMigMode, device) == n.NVML_ERROR_GPU_IS_LOST
    assert sim_nvml.code(n.nvmlDeviceGetHandleByIndex, 1) == n.NVML_ERROR_GPU_IS_LOST
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu(0)) == [0, 0]


def test_what_cannot_be_set_is_refused(make_host: Callable[..., Host]) -> None:
    host = make_host("a30")
    for words in (
        ("set", 0, "current=1"),
        ("set", 0, "clients=many"),
        ("set", 7, "clients=1"),
        ("set", 0, "lost"),
    ):
        assert host.simgpu(*words, check=False).returncode == 1, words
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu()) == [0, 0]


# ---- call log and faults ----


def test_the_log_tells_reads_from_writes(a100: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVMLSIM_LOG", str(a100.log))
    n.nvmlDeviceGetMigMode(sim_nvml.gpu())
    assert {kind for _, kind, _ in a100.calls()} == {"read"}
    sim_nvml.create(sim_nvml.gpu(), 0, 0)
    assert a100.calls()[-3:] == [
        ("nvmlDeviceGetHandleByIndex_v2", "read", n.NVML_SUCCESS),
        ("nvmlDeviceCreateGpuInstance", "write", n.NVML_SUCCESS),
        ("nvmlDeviceCreateGpuInstance", "write", n.NVML_ERROR_INSUFFICIENT_RESOURCES),
    ]


def test_a_host_can_log_the_calls_of_all_processes(a100: Host) -> None:
    a100.simgpu("set", "host", f"log={a100.log}")
    in_child(lambda: n.nvmlDeviceGetMigMode(sim_nvml.gpu()))
    assert ("nvmlDeviceGetMigMode", "read", n.NVML_SUCCESS) in a100.calls()
    a100.simgpu("set", "host", "log=")
    a100.log.unlink()
    n.nvmlDeviceGetMigMode(sim_nvml.gpu())
    assert not a100.log.exists()


def test_the_nth_call_of_a_process_fails(a100: Host) -> None:
    a100.simgpu("fault", "add", "nvmlDeviceCreateGpuInstance", n.NVML_ERROR_UNKNOWN, "--nth", 2)

    def three() -> list[int]:
        return sim_nvml.create(sim_nvml.gpu(), 19, 19, 19)

    assert in_child(three) == [0, n.NVML_ERROR_UNKNOWN, 0]
    assert len(sim_nvml.instances(sim_nvml.gpu())) == 2
    a100.simgpu("fault", "clear")
    assert sim_nvml.create(sim_nvml.gpu(), 19, 19) == [0, 0]


def test_a_fault_in_the_environment(a100: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVMLSIM_FAULT", f"nvmlDeviceGetMigMode={n.NVML_ERROR_TIMEOUT},nvmlDeviceGetUUID=999")
    assert sim_nvml.code(n.nvmlDeviceGetMigMode, sim_nvml.gpu()) == n.NVML_ERROR_TIMEOUT
    assert sim_nvml.code(n.nvmlDeviceGetMigMode, sim_nvml.gpu()) == n.NVML_ERROR_TIMEOUT
    assert sim_nvml.code(n.nvmlDeviceGetUUID, sim_nvml.gpu()) == n.NVML_ERROR_UNKNOWN
    assert sim_nvml.code(n.nvmlDeviceGetName, sim_nvml.gpu()) == n.NVML_SUCCESS


@pytest.mark.parametrize(
    ("what", "created"), [("kill", 1), ("kill-after", 2), ("hang", 1)], ids=["before", "after", "never"]
)
def test_a_caller_dies_or_waits_forever_at_its_second_change(a100: Host, what: str, created: int) -> None:
    a100.simgpu("fault", "add", "write", what, "--nth", 2)
    pid = start_child(lambda: sum(sim_nvml.create(sim_nvml.gpu(), 19, 19)))
    if what == "hang":
        until_signals_are_blocked(pid)
        os.kill(pid, signal.SIGTERM)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    a100.simgpu("fault", "clear")
    assert len(sim_nvml.instances(sim_nvml.gpu())) == created


def until_signals_are_blocked(pid: int) -> None:
    """Wait until a process takes no signal any more, as in a call that never answers."""
    status = Path(f"/proc/{pid}/status")
    while int(status.read_text().partition("SigBlk:")[2].split()[0], 16) == 0:
        time.sleep(0.01)


def test_several_faults_count_the_same_calls(a100: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVMLSIM_FAULT", "nvmlDeviceCreateGpuInstance@1=999,nvmlDeviceCreateGpuInstance@3=23")
    assert in_child(lambda: sim_nvml.create(sim_nvml.gpu(), 19, 19, 19, 19)) == [999, 0, 23, 0]


def test_other_faults_are_counted_anew(a100: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice() -> list[int]:
        monkeypatch.setenv("NVMLSIM_FAULT", "nvmlDeviceCreateGpuInstance@2=999")
        before = sim_nvml.create(sim_nvml.gpu(), 19, 19)
        monkeypatch.setenv("NVMLSIM_FAULT", "nvmlDeviceCreateGpuInstance@2=23")
        return [*before, *sim_nvml.create(sim_nvml.gpu(), 19, 19)]

    assert in_child(twice) == [0, 999, 0, 23]


def test_a_fault_that_is_none_is_refused(a100: Host) -> None:
    done = a100.simgpu("fault", "add", "nvmlInit_v2", "explode", check=False)
    assert "'explode' is no return code" in done.stderr


# ---- many processes ----


def start_child(work: Callable[[], int]) -> int:
    """Fork a process that ends with the number which work returns."""
    pid = os.fork()
    if not pid:
        os._exit(work())
    return pid


def test_of_processes_that_want_the_same_slice_one_gets_it(a100: Host) -> None:
    racers = [
        start_child(lambda: sim_nvml.code(sim_nvml.create_at, sim_nvml.gpu(), 0, 0, 8)) for _ in range(6)
    ]
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in racers)
    assert codes == [n.NVML_SUCCESS] + [n.NVML_ERROR_INSUFFICIENT_RESOURCES] * 5


def test_no_change_is_lost(a100: Host) -> None:
    def claim() -> int:
        return sum(sim_nvml.create(sim_nvml.gpu(), 19))

    for pid in [start_child(claim) for _ in range(7)]:
        assert os.waitpid(pid, 0)[1] == 0
    assert [start for _, start, _ in sim_nvml.places(sim_nvml.gpu())] == list(range(7))


def test_a_killed_writer_leaves_a_whole_state(a100: Host) -> None:
    def churn() -> int:
        while True:
            instance = sim_nvml.create_at(sim_nvml.gpu(), 9, 4, 4)
            n.nvmlGpuInstanceDestroy(instance)

    pause = random.Random(1)
    for _ in range(40):
        pid = start_child(churn)
        time.sleep(pause.uniform(0.002, 0.012))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert (a100.directory / "state").read_text().endswith("\nend\n")
        for instance in sim_nvml.instances(sim_nvml.gpu()):
            n.nvmlGpuInstanceDestroy(instance)
    assert sim_nvml.create(sim_nvml.gpu(), 9) == [n.NVML_SUCCESS]


def test_a_damaged_state_is_an_error_and_not_an_empty_host(a100: Host) -> None:
    state = a100.directory / "state"
    state.write_text(state.read_text().replace("end\n", ""))
    assert sim_nvml.code(n.nvmlDeviceGetCount) == n.NVML_ERROR_UNKNOWN


# ---- other users ----


def test_a_reader_cannot_hold_up_a_writer(a100: Host) -> None:
    """A writer never waits for a lock of a reader."""
    with (a100.directory / "state").open() as state:
        fcntl.flock(state, fcntl.LOCK_EX)
        assert in_child(lambda: sim_nvml.create(sim_nvml.gpu(), 19)) == [n.NVML_SUCCESS]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_an_ordinary_process_reads_without_a_lock_and_cannot_write(a100: Host) -> None:
    sim_nvml.create(sim_nvml.gpu(), 19)

    def attempt() -> dict[str, int | str]:
        result: dict[str, int | str] = {"mode": n.nvmlDeviceGetMigMode(sim_nvml.gpu())[0]}
        result["create"] = sim_nvml.create(sim_nvml.gpu(), 19)[
            0
        ]  # NVMLSIM_UID=0 poses as root: the files refuse
        for name, how in (("lock", "r"), ("state", "r+")):  # who can read a file can lock it
            try:
                (a100.directory / name).open(how).close()
                result[name] = "opened"
            except PermissionError:
                result[name] = "refused"
        return result

    with (a100.directory / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a writer at work does not hold up a reader
        found = in_child(attempt, uid=NOBODY)
    assert found == {"mode": 1, "create": n.NVML_ERROR_NO_PERMISSION, "lock": "refused", "state": "refused"}
