# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of MIG, as a caller of NVML meets them. Expected numbers are those of NVIDIA's MIG user guide."""

from __future__ import annotations

from collections.abc import Callable

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host


def test_a_host_shows_its_gpus(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb:2", "h100-80gb", "a30")
    assert n.nvmlDeviceGetCount() == 4
    names = [n.nvmlDeviceGetName(sim_nvml.gpu(i)) for i in range(4)]
    assert names == ["NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA A30"]
    assert n.nvmlDeviceGetPciInfo(sim_nvml.gpu(1)).busId == "00000000:0F:00.0"
    uuids = {n.nvmlDeviceGetUUID(sim_nvml.gpu(i)) for i in range(4)}
    assert len(uuids) == 4
    for i in range(4):
        device = sim_nvml.gpu(i)
        assert n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(device))) == i
        assert n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleBySerial(n.nvmlDeviceGetSerial(device))) == i
        assert (
            n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(device).busId)) == i
        )


def test_an_unknown_model_is_refused_and_the_known_ones_are_told(make_host: Callable[..., Host]) -> None:
    done = make_host("a30").simgpu("init", "voodoo2", check=False)
    assert done.returncode == 1
    assert "'voodoo2'" in done.stderr
    assert "a100-80gb" in done.stderr
    assert n.nvmlDeviceGetName(sim_nvml.gpu()) == "NVIDIA A30"


def test_profiles_and_placements_of_an_a100(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb")
    found = {name: (p.id, p.instanceCount) for name, p in sim_nvml.profiles(sim_nvml.gpu()).items()}
    assert found == {
        "1g.10gb": (19, 7),
        "1g.10gb+me": (20, 1),
        "1g.20gb": (15, 4),
        "2g.20gb": (14, 3),
        "3g.40gb": (9, 2),
        "4g.40gb": (5, 1),
        "7g.80gb": (0, 1),
    }
    assert sim_nvml.placements(sim_nvml.gpu(), 9) == [(0, 4), (4, 4)]
    assert sim_nvml.placements(sim_nvml.gpu(), 15) == [(0, 2), (2, 2), (4, 2), (6, 2)]
    assert sim_nvml.placements(sim_nvml.gpu(), 19) == [(start, 1) for start in range(7)]


def test_profile_ids_mean_something_else_on_an_a30(make_host: Callable[..., Host]) -> None:
    make_host("a30")
    assert {name: p.id for name, p in sim_nvml.profiles(sim_nvml.gpu()).items()} == {
        "1g.6gb": 14,
        "1g.6gb+me": 21,
        "2g.12gb": 5,
        "2g.12gb+me": 6,
        "4g.24gb": 0,
    }
    assert sim_nvml.placements(sim_nvml.gpu(), 14) == [(0, 1), (1, 1), (2, 1), (3, 1)]


def test_a_gpu_without_mig_says_so(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    assert sim_nvml.code(n.nvmlDeviceGetMigMode, sim_nvml.gpu()) == n.NVML_ERROR_NOT_SUPPORTED
    assert sim_nvml.code(n.nvmlDeviceSetMigMode, sim_nvml.gpu(), 1) == n.NVML_ERROR_NOT_SUPPORTED
    assert n.nvmlDeviceGetMaxMigDeviceCount(sim_nvml.gpu()) == 0


# ---- mode ----


def test_without_mig_mode_there_are_no_instances(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb")
    assert sim_nvml.create(sim_nvml.gpu(), 19) == [n.NVML_ERROR_NOT_SUPPORTED]
    assert (
        sim_nvml.code(n.nvmlDeviceGetGpuInstanceRemainingCapacity, sim_nvml.gpu(), 19)
        == n.NVML_ERROR_NOT_SUPPORTED
    )
    assert n.nvmlDeviceGetMaxMigDeviceCount(sim_nvml.gpu()) == 0
    assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(), 1) == n.NVML_SUCCESS
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu()) == [1, 1]
    assert n.nvmlDeviceGetMaxMigDeviceCount(sim_nvml.gpu()) == 7


def test_the_mode_of_a_held_gpu_is_only_pending(make_host: Callable[..., Host]) -> None:
    host = make_host("a100-80gb")
    host.simgpu("set", 0, "clients=1")
    assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(), 1) == n.NVML_ERROR_IN_USE
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu()) == [0, 1]
    assert "in use" in host.simgpu("reset", 0, check=False).stderr
    host.simgpu("set", 0, "clients=0")
    host.simgpu("reset", 0)
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu()) == [1, 1]


def test_an_ampere_gpu_in_a_vm_needs_a_reboot(make_host: Callable[..., Host]) -> None:
    host = make_host("a100-80gb", "h100-80gb")
    host.simgpu("set", 0, "passthrough=1")
    host.simgpu("set", 1, "passthrough=1")
    assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(0), 1) == n.NVML_ERROR_RESET_REQUIRED
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu(0)) == [0, 1]
    assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(1), 1) == n.NVML_SUCCESS
    assert "reboot" in host.simgpu("reset", 0, check=False).stderr
    host.simgpu("boot")
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu(0)) == [1, 1]


def test_a_reboot_keeps_the_mode_of_ampere_and_no_instance(make_host: Callable[..., Host]) -> None:
    host = make_host("a100-80gb", "h100-80gb")
    for i in range(2):
        assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(i), 1) == n.NVML_SUCCESS
        assert sim_nvml.create(sim_nvml.gpu(i), 9) == [n.NVML_SUCCESS]
    host.simgpu("boot")
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu(0)) == [1, 1]
    assert sim_nvml.instances(sim_nvml.gpu(0)) == []
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu(1)) == [0, 0]


def test_mode_stays_on_while_there_are_instances(a100: Host) -> None:
    sim_nvml.create(sim_nvml.gpu(), 19)
    assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(), 0) == n.NVML_ERROR_IN_USE
    n.nvmlGpuInstanceDestroy(sim_nvml.instances(sim_nvml.gpu())[0])
    assert n.nvmlDeviceSetMigMode(sim_nvml.gpu(), 0) == n.NVML_SUCCESS


# ---- placement ----


def test_the_drivers_own_order_is_a_trap(a100: Host) -> None:
    """Example 2 of the guide: the same four profiles fit or do not, depending on the order of creation."""
    assert sim_nvml.create(sim_nvml.gpu(), 19, 19, 14, 9) == [0, 0, 0, n.NVML_ERROR_INSUFFICIENT_RESOURCES]
    assert sim_nvml.places(sim_nvml.gpu()) == [(14, 0, 2), (19, 4, 1), (19, 6, 1)]
    for instance in sim_nvml.instances(sim_nvml.gpu()):
        n.nvmlGpuInstanceDestroy(instance)
    assert sim_nvml.create(sim_nvml.gpu(), 9, 19, 14, 19) == [0, 0, 0, 0]
    assert sim_nvml.places(sim_nvml.gpu()) == [(19, 0, 1), (19, 1, 1), (14, 2, 2), (9, 4, 4)]


def test_explicit_placements_fit_in_any_order(a100: Host) -> None:
    for profile, start, size in [(19, 0, 1), (19, 1, 1), (14, 2, 2), (9, 4, 4)]:
        sim_nvml.create_at(sim_nvml.gpu(), profile, start, size)
    assert n.nvmlDeviceGetGpuInstanceRemainingCapacity(sim_nvml.gpu(), 19) == 0


@pytest.mark.parametrize(
    ("place", "expected"),
    [((9, 2, 4), n.NVML_ERROR_INVALID_ARGUMENT), ((9, 0, 3), n.NVML_ERROR_INVALID_ARGUMENT), ((9, 4, 4), 0)],
)
def test_only_listed_placements_are_taken(a100: Host, place: tuple[int, int, int], expected: int) -> None:
    assert sim_nvml.code(sim_nvml.create_at, sim_nvml.gpu(), *place) == expected


def test_overlapping_instances_are_refused(a100: Host) -> None:
    sim_nvml.create_at(sim_nvml.gpu(), 14, 0, 2)
    assert sim_nvml.code(sim_nvml.create_at, sim_nvml.gpu(), 19, 1, 1) == n.NVML_ERROR_INSUFFICIENT_RESOURCES
    assert sim_nvml.code(sim_nvml.create_at, sim_nvml.gpu(), 9, 0, 4) == n.NVML_ERROR_INSUFFICIENT_RESOURCES
    assert n.nvmlDeviceGetGpuInstanceRemainingCapacity(sim_nvml.gpu(), 9) == 1


def test_capacity_with_every_profile_alone_is_the_published_count(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb", "h100-80gb", "a30")
    for i in range(3):
        n.nvmlDeviceSetMigMode(sim_nvml.gpu(i), 1)
        for name, profile in sim_nvml.profiles(sim_nvml.gpu(i)).items():
            left = n.nvmlDeviceGetGpuInstanceRemainingCapacity(sim_nvml.gpu(i), profile.id)
            assert left == profile.instanceCount, name


def test_media_engines_are_shared(make_host: Callable[..., Host]) -> None:
    """An A30 has one JPEG engine: 1g+me and 2g+me exclude each other although both have room."""
    make_host("a30")
    n.nvmlDeviceSetMigMode(sim_nvml.gpu(), 1)
    assert sim_nvml.create(sim_nvml.gpu(), 21, 6, 5) == [0, n.NVML_ERROR_INSUFFICIENT_RESOURCES, 0]


def test_a_profiler_keeps_instances_from_being_created(a100: Host) -> None:
    a100.simgpu("set", 0, "profiler=1")
    assert sim_nvml.create(sim_nvml.gpu(), 19) == [n.NVML_ERROR_IN_USE]


# ---- compute instances and MIG devices ----


def test_a_gpu_instance_alone_is_no_mig_device(a100: Host) -> None:
    instance = sim_nvml.create_at(sim_nvml.gpu(), 9, 0, 4)
    assert sim_nvml.mig_devices(sim_nvml.gpu()) == []
    n.nvmlGpuInstanceCreateComputeInstance(instance, 2)
    (device,) = sim_nvml.mig_devices(sim_nvml.gpu())
    assert n.nvmlDeviceGetName(device) == "NVIDIA A100-SXM4-80GB MIG 3g.40gb"
    assert n.nvmlDeviceIsMigDeviceHandle(device)
    assert n.nvmlDeviceGetMemoryInfo(device).total == 40192 << 20
    assert n.nvmlDeviceGetAttributes(device).multiprocessorCount == 42


def test_a_gpu_instance_can_be_divided(a100: Host) -> None:
    instance = sim_nvml.create_at(sim_nvml.gpu(), 9, 4, 4)
    for _ in range(3):
        n.nvmlGpuInstanceCreateComputeInstance(instance, 0)
    assert (
        sim_nvml.code(n.nvmlGpuInstanceCreateComputeInstance, instance, 0)
        == n.NVML_ERROR_INSUFFICIENT_RESOURCES
    )
    names = [n.nvmlDeviceGetName(device) for device in sim_nvml.mig_devices(sim_nvml.gpu())]
    assert names == ["NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb"] * 3
    assert len(set(sim_nvml.mig_uuids(sim_nvml.gpu()))) == 3
    found = n.nvmlDeviceGetHandleByUUID(sim_nvml.mig_uuids(sim_nvml.gpu())[1])
    assert n.nvmlDeviceGetComputeInstanceId(found) == 1


@pytest.mark.parametrize(
    ("profile", "offered"), [(19, {0: 1}), (15, {0: 1, 7: 1}), (14, {0: 1, 1: 2}), (5, {0: 1, 1: 2, 3: 4})]
)
def test_compute_profiles(a100: Host, profile: int, offered: dict[int, int]) -> None:
    """The double-memory 1g lists compute profile 7 (a GH200) and takes 0 (mig-parted); a 4g has no 3c."""
    sim_nvml.create(sim_nvml.gpu(), profile)
    (instance,) = sim_nvml.instances(sim_nvml.gpu())
    found = {}
    for index in range(n.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0)
        except n.NVMLError_NotSupported:
            continue
        found[info.id] = info.sliceCount
    assert found == offered


@pytest.mark.parametrize(("first", "second"), [(0, 7), (7, 0)])
def test_a_double_memory_1g_has_one_slice_for_both_of_its_compute_profiles(
    a100: Host, first: int, second: int
) -> None:
    """The default configuration of mig-parted makes all-1g.20gb with compute profile 0."""
    sim_nvml.create(sim_nvml.gpu(), 15)
    (instance,) = sim_nvml.instances(sim_nvml.gpu())
    n.nvmlGpuInstanceCreateComputeInstance(instance, first)
    assert (
        sim_nvml.code(n.nvmlGpuInstanceCreateComputeInstance, instance, second)
        == n.NVML_ERROR_INSUFFICIENT_RESOURCES
    )
    [device] = sim_nvml.mig_devices(sim_nvml.gpu())
    assert n.nvmlDeviceGetName(device) == "NVIDIA A100-SXM4-80GB MIG 1g.20gb"


def test_a_slice_keeps_its_uuid_when_it_is_made_again(a100: Host) -> None:
    def make() -> str:
        n.nvmlGpuInstanceCreateComputeInstance(sim_nvml.create_at(sim_nvml.gpu(), 14, 2, 2), 1)
        return sim_nvml.mig_uuids(sim_nvml.gpu())[0]

    first = make()
    a100.simgpu("boot")
    assert sim_nvml.mig_uuids(sim_nvml.gpu()) == []
    assert make() == first


def test_a_stale_handle_is_refused(a100: Host) -> None:
    instance = sim_nvml.create_at(sim_nvml.gpu(), 14, 2, 2)
    compute = n.nvmlGpuInstanceCreateComputeInstance(instance, 1)
    (device,) = sim_nvml.mig_devices(sim_nvml.gpu())
    n.nvmlComputeInstanceDestroy(compute)
    n.nvmlGpuInstanceDestroy(instance)
    assert sim_nvml.code(n.nvmlDeviceGetName, device) == n.NVML_ERROR_INVALID_ARGUMENT
    assert sim_nvml.code(n.nvmlGpuInstanceGetInfo, instance) == n.NVML_ERROR_INVALID_ARGUMENT


# ---- use ----


def test_what_is_in_use_is_not_destroyed(a100: Host) -> None:
    instance = sim_nvml.create_at(sim_nvml.gpu(), 9, 0, 4)
    compute = n.nvmlGpuInstanceCreateComputeInstance(instance, 2)
    (uuid,) = sim_nvml.mig_uuids(sim_nvml.gpu())
    a100.simgpu("process", "start", "--slice", uuid, "--memory", 500, "--pid", 4242)
    assert sim_nvml.code(n.nvmlComputeInstanceDestroy, compute) == n.NVML_ERROR_IN_USE
    assert sim_nvml.code(n.nvmlGpuInstanceDestroy, instance) == n.NVML_ERROR_IN_USE
    for device in (sim_nvml.gpu(), sim_nvml.mig_devices(sim_nvml.gpu())[0]):
        (process,) = n.nvmlDeviceGetComputeRunningProcesses(device)
        assert (process.pid, process.usedGpuMemory) == (4242, 500 << 20)
    assert n.nvmlDeviceGetMemoryInfo(sim_nvml.mig_devices(sim_nvml.gpu())[0]).used >= 500 << 20
    a100.simgpu("process", "stop", 4242)
    n.nvmlComputeInstanceDestroy(compute)
    n.nvmlGpuInstanceDestroy(instance)
    assert sim_nvml.instances(sim_nvml.gpu()) == []


def test_a_process_is_a_real_one_that_can_be_named(a100: Host) -> None:
    n.nvmlGpuInstanceCreateComputeInstance(sim_nvml.create_at(sim_nvml.gpu(), 9, 0, 4), 2)
    (uuid,) = sim_nvml.mig_uuids(sim_nvml.gpu())
    pid = int(a100.simgpu("process", "start", "--slice", uuid).stdout)
    assert n.nvmlSystemGetProcessName(pid) == "sleep"
    a100.simgpu("process", "stop", pid)
    assert n.nvmlDeviceGetComputeRunningProcesses(sim_nvml.gpu()) == []


def test_a_process_must_fit(a100: Host) -> None:
    n.nvmlGpuInstanceCreateComputeInstance(sim_nvml.create_at(sim_nvml.gpu(), 19, 0, 1), 0)
    (uuid,) = sim_nvml.mig_uuids(sim_nvml.gpu())
    done = a100.simgpu("process", "start", "--slice", uuid, "--memory", 20000, check=False)
    assert "9728" in done.stderr
    assert "MIG mode" in a100.simgpu("process", "start", "--gpu", 0, check=False).stderr
    assert n.nvmlDeviceGetComputeRunningProcesses(sim_nvml.gpu()) == []


# ---- permissions ----


def test_an_ordinary_user_may_look_but_not_change(a100: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """sim_nvml.h marks these calls with "Requires privileged user"."""
    compute = n.nvmlGpuInstanceCreateComputeInstance(sim_nvml.create_at(sim_nvml.gpu(), 9, 0, 4), 2)
    (instance,) = sim_nvml.instances(sim_nvml.gpu())
    monkeypatch.setenv("NVMLSIM_UID", "1000")
    refused = n.NVML_ERROR_NO_PERMISSION
    assert sim_nvml.code(n.nvmlDeviceSetMigMode, sim_nvml.gpu(), 0) == refused
    assert sim_nvml.create(sim_nvml.gpu(), 19) == [refused]
    assert sim_nvml.code(n.nvmlComputeInstanceDestroy, compute) == refused
    assert sim_nvml.code(n.nvmlGpuInstanceDestroy, instance) == refused
    assert sim_nvml.code(n.nvmlDeviceGetGpuInstanceById, sim_nvml.gpu(), 1) == refused
    assert sim_nvml.code(n.nvmlDeviceGetGpuInstanceRemainingCapacity, sim_nvml.gpu(), 19) == refused
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu()) == [1, 1]
    assert len(sim_nvml.mig_uuids(sim_nvml.gpu())) == 1
