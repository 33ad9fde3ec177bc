"""GPUs are read and partitioned through NVML: adapter and execution of plans, on a simulated machine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pynvml
import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    parse_flavor,
    parse_layout,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    DriverNotRunning,
    Gpu,
    GpuError,
    Placement,
    slices,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from simulated_machine import Machine

Make = Callable[..., Machine]


def read() -> tuple[Gpu, ...]:
    with session.session() as nvml:
        return nvml.gpus()


def partition(flavor: str, *indexes: int) -> tuple[Gpu, ...]:
    """Partition the GPUs of the indexes, by default the first one."""
    with session.session() as nvml:
        gpus = nvml.gpus()
        return apply.apply(
            nvml, [plan_flavor(gpus[index], parse_flavor(flavor)) for index in indexes or (0,)]
        ).gpus


def layout(gpu: Gpu) -> list[str]:
    return [str(one) for one in sorted(gpu.instances, key=lambda one: one.placement)]


# reading


def test_a_gpu_is_read_with_all_it_offers(make_machine: Make) -> None:
    make_machine("a100-80gb", "a30", "t4")
    a100, a30, t4 = read()
    assert (a100.index, a100.name, a100.mig_capable, a100.mig_enabled) == (
        0,
        "NVIDIA A100-SXM4-80GB",
        True,
        False,
    )
    assert a100.uuid.startswith("GPU-") and a100.pci_address.count(":") == 2 and len(a100.pci_address) == 12
    profiles = {profile.name: profile for profile in a100.profiles}
    assert set(profiles) == {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}
    half = profiles["3g.40gb"]
    assert (half.slices, half.max_count, half.placements) == (3, 2, (Placement(0, 4), Placement(4, 4)))
    assert half.remaining is None
    # the same profile id means different things on two cards
    assert {one.name for gpu in (a100, a30) for one in gpu.profiles if one.id == 14} == {"2g.20gb", "1g.6gb"}
    assert not t4.mig_capable and t4.profiles == ()


def test_reading_changes_nothing(make_machine: Make) -> None:
    machine = make_machine("a100-80gb", "h100-80gb")
    read()
    assert machine.writes() == []


def test_the_versions_of_the_driver_are_told(make_machine: Make) -> None:
    make_machine("a100-80gb")
    with session.session() as nvml:
        driver = nvml.driver()
    assert driver.nvml_version.endswith(driver.version)
    assert driver.cuda_version.count(".") == 1


def test_programs_are_told_with_the_partition_they_use(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    gpu = partition("2x 3g.40gb")[0]
    uuid = gpu.instances[1].compute_instances[0].uuid
    machine.simgpu("process", "start", "--slice", uuid, "--memory", 100, "--pid", 4242)
    gpu = read()[0]
    assert [process.pid for process in gpu.users(gpu.instances[1])] == [4242]
    assert gpu.users(gpu.instances[0]) == ()


def test_a_program_with_any_name_is_told(make_machine: Make) -> None:
    """Users choose the names of their programs, and the binding takes them for UTF-8."""
    machine = make_machine("a100-80gb")
    with subprocess.Popen([b"./tr\xffa\x1b[2Jin", "60"], executable="/bin/sleep") as program:
        try:
            machine.simgpu("process", "start", "--gpu", "0", "--memory", 100, "--pid", program.pid)
            (gpu,) = read()
        finally:
            program.kill()
    assert [str(one) for one in gpu.processes] == [f"tr\ufffda\ufffd[2Jin (PID {program.pid})"]


# partitions


@pytest.mark.parametrize("model", ["a100-80gb", "h100-80gb"])
def test_a_gpu_is_partitioned_and_changed(make_machine: Make, model: str) -> None:
    machine = make_machine(model)
    gpu = partition("7x 1g.10gb")[0]
    assert gpu.mig_enabled and all(one.whole for one in gpu.instances)
    assert len({one["uuid"] for one in slices((gpu,))}) == 7
    gpu = partition("1x 3g.40gb, 1x 2g.20gb, 2x 1g.10gb")[0]
    assert sorted(one.profile.name for one in gpu.instances) == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    before = len(machine.writes())
    assert before > 0
    partition("1x 3g.40gb, 1x 2g.20gb, 2x 1g.10gb")
    assert len(machine.writes()) == before
    gpu = partition("disabled")[0]
    assert not gpu.mig_enabled and not gpu.mig_pending and gpu.instances == ()


def test_the_double_memory_slice_gets_the_compute_instance_of_its_own(make_machine: Make) -> None:
    make_machine("a100-80gb")
    assert all(one.whole for one in partition("4x 1g.20gb")[0].instances)


def test_only_the_chosen_gpus_are_touched(make_machine: Make) -> None:
    make_machine("a100-80gb", "a100-80gb")
    first, second = partition("2x 3g.40gb", 1)
    assert not first.mig_enabled and layout(second) == ["3g.40gb at 0", "3g.40gb at 4"]


def test_partitions_that_stay_keep_their_uuids(make_machine: Make) -> None:
    make_machine("a100-80gb")
    before = slices(partition("2x 3g.40gb"))
    after = slices(partition("1x 3g.40gb, 3x 1g.10gb"))
    assert {one["uuid"] for one in before} & {one["uuid"] for one in after}


def test_a_partition_without_compute_instance_is_filled(make_machine: Make) -> None:
    make_machine("a100-80gb")
    partition("2x 3g.40gb")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    instance = pynvml.nvmlDeviceGetGpuInstanceById(handle, read()[0].instances[0].id)
    pynvml.nvmlInit()
    compute_instance = pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
    pynvml.nvmlComputeInstanceDestroy(compute_instance)
    gpu = read()[0]
    assert [one.whole for one in gpu.instances] == [False, True] and len(slices((gpu,))) == 1
    assert len(slices(partition("2x 3g.40gb"))) == 2


def test_a_stored_layout_comes_back_in_its_places_after_a_reboot(make_machine: Make) -> None:
    machine = make_machine("h100-80gb")
    partition("7x 1g.10gb")
    places = [
        {"profile": one.profile.name, "start": one.placement.start}
        for one in partition("1x 3g.40gb, 2x 1g.10gb")[0].instances
    ]
    before = layout(read()[0])
    machine.simgpu("boot")
    assert not read()[0].mig_enabled
    with session.session() as nvml:
        gpu = apply.apply(nvml, [plan_flavor(nvml.gpus()[0], parse_layout(places))]).gpus[0]
    assert layout(gpu) == before


# what goes wrong


def test_a_partition_in_use_is_refused_before_anything_is_touched(make_machine: Make) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    gpus = partition("7x 1g.10gb", 0, 1)
    machine.simgpu("process", "start", "--slice", slices(gpus)[9]["uuid"], "--memory", 100, "--pid", 4242)
    before = len(machine.writes())
    assert before > 0
    with pytest.raises(GpuError, match=r"PID 4242"):
        partition("2x 3g.40gb", 0, 1)
    assert len(machine.writes()) == before


def test_what_the_driver_refuses_halfway_is_put_back(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    before = slices(partition("7x 1g.10gb"))
    # Insufficient resources, at the second creation
    machine.simgpu("fault", "add", "nvmlDeviceCreateGpuInstanceWithPlacement", 23, "--nth", 2)
    with pytest.raises(GpuError, match="The former partitions were put back"):
        partition("2x 3g.40gb")
    assert slices(read()) == before


def test_when_one_gpu_fails_the_former_partitions_of_all_are_put_back(make_machine: Make) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    before = slices(partition("7x 1g.10gb", 0, 1))
    # at the first destruction on the second GPU
    machine.simgpu("fault", "add", "nvmlGpuInstanceDestroy", 19, "--nth", 8)
    with pytest.raises(GpuError, match="The former partitions were put back"):
        partition("2x 3g.40gb", 0, 1)
    assert slices(read()) == before


def test_partitions_that_cannot_be_put_back_are_told_and_made_by_the_next_run(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    partition("7x 1g.10gb")
    machine.simgpu("fault", "add", "nvmlDeviceCreateGpuInstanceWithPlacement", 23)
    with pytest.raises(GpuError, match=r"not all be put back: GPU 0 .* has MIG mode on and no partition"):
        partition("2x 3g.40gb")
    machine.simgpu("fault", "clear")
    assert layout(partition("2x 3g.40gb")[0]) == ["3g.40gb at 0", "3g.40gb at 4"]


def test_partitions_come_back_when_the_mode_cannot_be_switched_off(make_machine: Make) -> None:
    machine = make_machine("h100-80gb")
    before = slices(partition("7x 1g.10gb"))
    machine.simgpu("set", 0, "clients=1")
    with pytest.raises(GpuError, match=r"switched off, as the GPU is used by .* partitions were put back"):
        partition("disabled")
    assert slices(read()) == before


def test_mode_that_cannot_change_is_refused_and_does_not_change_later(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("set", 0, "clients=1")
    with pytest.raises(GpuError, match="a program that NVML does not list: stop what holds it"):
        partition("2x 3g.40gb")
    machine.simgpu("set", 0, "clients=0")
    assert not read()[0].mig_enabled and not read()[0].mig_pending


def test_mode_that_needs_a_reboot_is_told(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("set", 0, "passthrough=1")
    partition("2x 3g.40gb")
    assert read()[0].mig_pending and not read()[0].mig_enabled
    machine.simgpu("boot")
    assert layout(partition("2x 3g.40gb")[0]) == ["3g.40gb at 0", "3g.40gb at 4"]


def test_a_driver_that_is_not_loaded_is_told_apart(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("driver", "unload")
    with pytest.raises(DriverNotRunning, match="kernel module is not loaded"):
        read()


def test_a_failing_query_is_an_error_not_an_empty_answer(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("fault", "add", "nvmlDeviceGetGpuInstancePossiblePlacements_v2", 999)
    with pytest.raises(GpuError):
        read()


def test_a_machine_without_the_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    with pytest.raises(GpuError, match=r"no library libnvidia-ml\.so\.1"):
        read()


def test_an_old_binding_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.metadata, "version", lambda _name: "11.510.69")
    with pytest.raises(GpuError, match=r"nvidia-ml-py 11\.510\.69 is too old"):
        read()
