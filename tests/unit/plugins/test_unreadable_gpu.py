"""A GPU that cannot be read: it is told as data, and stands in the way only of those who name it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._cdi.io import command, host
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.rules import Reading
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import restore
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.stored import merged
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    REPAIR,
    Gpu,
    GpuError,
    Unreadable,
    identified,
    select,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import kernel_gpus, offers, session
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import readings as nvml_readings
from ansible_collections.gpufarm.cluster.plugins.modules import (
    cdi_spec,
    gpu_info,
    gpu_validate,
    mig_partition,
    mig_validate,
)
from mig_geometry import gpu
from simulated_machine import Machine

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]
LOST = "NVML was asked for GPU 1 and answered: GPU is lost."


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a module with some arguments; returns its result."""
    monkeypatch.setattr(mig_partition, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(offers, "LIBRARY", os.environ.get("NVMLSIM_LIBRARY", ""))
    monkeypatch.setattr(host, "SPECIFICATION", tmp_path / "cdi" / "nvidia.yaml")
    monkeypatch.setattr(host, "FOLDERS", ())
    monkeypatch.setattr(host, "_run", lambda _command: "")

    def run_module(module: Any, **arguments: Any) -> dict[str, Any]:
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.fixture
def uuids(make_machine: Make) -> list[str]:
    """A machine of three GPUs, of which GPU 1 is lost; returns the UUIDs of all."""
    machine = make_machine("a100-80gb", "a100-80gb", "a100-80gb")
    with session.session() as nvml:
        found = [one.uuid for one in nvml.gpus()]
    machine.control("set", "1", "lost", "1")
    return found


@pytest.fixture
def kernel(uuids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Returns what has the kernel list the three GPUs, the lost one with a UUID."""
    with session.session() as nvml:
        first, third = nvml.gpus()
    addresses = {first.pci_address: first.uuid, third.pci_address: third.uuid}

    def list_gpus(uuid: str) -> None:
        for address, known in {**addresses, "0000:aa:00.0": uuid}.items():
            file = tmp_path / "gpus" / address / "information"
            file.parent.mkdir(parents=True)
            file.write_text(f"Model: \t\t NVIDIA A100\nGPU UUID: \t {known}\nBus Type: \t PCIe\n")
        monkeypatch.setattr(kernel_gpus, "FOLDER", tmp_path / "gpus")

    return list_gpus


def warnings(result: dict[str, Any]) -> str:
    return json.dumps(result.get("warnings", []))


# gpu_info and gpu_validate


def test_gpu_info_tells_what_can_be_read_and_what_cannot(uuids: list[str], run: Run) -> None:
    told = run(gpu_info, facts=True)
    assert [one["index"] for one in told["gpus"]] == [0, 2]
    assert told["unreadable"] == [{"index": 1, "uuid": "", "pci_address": "", "reason": LOST}]
    assert told["ansible_facts"]["gpufarm_gpus"]["unreadable"] == told["unreadable"]
    assert f"GPU 1 cannot be read: {LOST}" in warnings(told)


def test_a_gpu_that_is_lost_is_identified_by_the_list_of_the_kernel(
    uuids: list[str], kernel: Callable[[str], None], run: Run
) -> None:
    kernel(uuids[1])
    [failed] = run(gpu_info)["unreadable"]
    assert (failed["uuid"], failed["pci_address"]) == (uuids[1], "0000:aa:00.0")


def test_the_kernel_may_not_know_the_uuid(uuids: list[str], kernel: Callable[[str], None], run: Run) -> None:
    kernel("GPU-????????-????-????-????-????????????")
    [failed] = run(gpu_info)["unreadable"]
    assert (failed["uuid"], failed["pci_address"]) == ("", "0000:aa:00.0")


def test_a_gpu_that_fails_later_is_identified_by_nvml(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    second = run(gpu_info)["gpus"][1]
    machine.simgpu("fault", "add", "nvmlDeviceGetMemoryInfo", 999, "--nth", 2)
    told = run(gpu_info, gpus=["0"])  # the second GPU fails and is not asked about
    assert [one["index"] for one in told["gpus"]] == [0]
    [failed] = told["unreadable"]
    assert (failed["uuid"], failed["pci_address"]) == (second["uuid"], second["pci_address"])
    assert "nvmlDeviceGetMemoryInfo of GPU 1" in failed["reason"]


@pytest.mark.parametrize("selectors", [["1"], ["all"], ["0", "1"]])
@pytest.mark.parametrize("module", [gpu_info, gpu_validate])
def test_a_request_that_names_the_gpu_is_refused(
    uuids: list[str], run: Run, module: Any, selectors: list[str]
) -> None:
    message = run(module, gpus=selectors)["msg"]
    assert message.startswith(f"GPU 1 cannot be read: {LOST} Look into the kernel's log")
    assert "Or select other GPUs: GPU 0 (" in message


@pytest.mark.parametrize("selector", ["0", "2"])
def test_requests_for_others_are_answered(uuids: list[str], run: Run, selector: str) -> None:
    [found] = run(gpu_info, gpus=[selector])["gpus"]
    assert found["uuid"] == uuids[int(selector)]
    assert run(gpu_validate, gpus=[selector], count=1, model="A100")["checks"][0]["ok"]


def test_a_search_by_uuid_that_meets_the_lost_gpu_is_no_obstacle(
    uuids: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_uuid: str) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lost)
    [found] = run(gpu_info, gpus=["2"])["gpus"]
    assert found["uuid"] == uuids[2] and found["readings"]["temperature"]
    assert run(mig_partition, flavor="7x 1g.10gb", gpus=["2"])["changed"]
    with pytest.raises(nvml_readings.Failed, match="GPU_IS_LOST"), session.session():
        nvml_readings.Reader().open(uuids[1])


def test_a_whole_machine_with_such_a_gpu_is_not_as_declared(uuids: list[str], run: Run) -> None:
    assert run(gpu_validate, model="A100")["msg"].startswith("GPU 1 cannot be read")


def test_where_no_gpu_can_be_read_the_answer_is_an_error(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb").control("set", "0", "lost", "1")
    told = run(gpu_info)
    assert told["failed"] and "GPU 0 cannot be read: NVML was asked for GPU 0" in told["msg"]


# partitions


def test_other_gpus_are_partitioned(uuids: list[str], run: Run) -> None:
    told = run(mig_partition, flavor="7x 1g.10gb", gpus=["0", uuids[2]])
    assert told["changed"] and len(told["slices"]) == 14
    assert told["machine"] == [uuids[0], uuids[2], ""]
    assert "GPU 1 cannot be read" in warnings(told)


def test_partitions_of_all_gpus_are_refused_before_any_change(uuids: list[str], run: Run) -> None:
    told = run(mig_partition, flavor="7x 1g.10gb")
    assert told["msg"].startswith(f"GPU 1 cannot be read: {LOST}") and "select other GPUs" in told["msg"]
    with session.session() as nvml:
        assert not any(one.mig_enabled for one in nvml.gpus())


def test_that_is_so_before_anything_is_installed_too(uuids: list[str], run: Run) -> None:
    assert run(mig_validate, flavor="7x 1g.10gb")["msg"].startswith(f"GPU 1 cannot be read: {LOST}")
    assert run(mig_validate, flavor="7x 1g.10gb", gpus=["0", "2"])["unchecked"] == ""
    assert "at most 7x" in run(mig_validate, flavor="8x 1g.10gb", gpus=["2"])["msg"]


def test_a_gpu_that_is_lost_during_a_change_is_named_and_others_get_their_partitions_back(
    make_machine: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    before = run(mig_partition, flavor="7x 1g.10gb")["slices"]
    create = session.Nvml.create_gpu_instance

    def lose(nvml: session.Nvml, uuid: str, *arguments: Any) -> Any:
        if uuid == before[-1]["gpu"]:
            machine.control("set", "1", "lost", "1")
        return create(nvml, uuid, *arguments)

    monkeypatch.setattr(session.Nvml, "create_gpu_instance", lose)
    message = run(mig_partition, flavor="2x 3g.40gb")["msg"]
    assert "could not all be put back: GPU 1 (NVIDIA A100-SXM4-80GB" in message
    assert "cannot be read any more" in message
    with session.session() as nvml:
        assert [str(one) for one in nvml.gpus()[0].instances].count("1g.10gb at 0") == 1
        assert len(nvml.gpus()[0].instances) == 7


def test_the_stored_layout_keeps_entries_of_gpus_that_may_be_the_unreadable_one() -> None:
    stored = [{"gpu": "GPU-bb", "mig_enabled": True, "partitions": []}]
    assert merged(stored, [], ["GPU-aa", ""], "play") == stored
    assert merged(stored, [], ["GPU-aa", "GPU-cc"], "play") == []


def entry(uuid: str) -> dict[str, Any]:
    return {"gpu": uuid, "partitions": [{"profile": "7g.80gb", "start": 0}]}


def test_at_boot_other_gpus_get_their_partitions(uuids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "locked", contextlib.nullcontext)
    [problem] = restore.restore([entry(one) for one in uuids])
    assert uuids[1] in problem and f"GPU 1 cannot be read: {LOST}" in problem
    with session.session() as nvml:
        assert [len(one.instances) for one in nvml.gpus()] == [1, 1]
    [difference] = restore.differences([entry(one) for one in uuids])
    assert LOST in difference


def test_at_boot_the_next_step_is_no_other_selection(
    uuids: list[str], kernel: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "locked", contextlib.nullcontext)
    kernel(uuids[1])
    [problem] = restore.differences([entry(uuids[1])])
    assert problem == f"GPU 1 (0000:aa:00.0, {uuids[1]}) cannot be read: {LOST}{REPAIR}"


# containers


def test_containers_get_the_other_gpus(uuids: list[str], run: Run) -> None:
    told = run(cdi_spec)
    assert "nvidia.com/gpu=0" in told["devices"] and "nvidia.com/gpu=2" in told["devices"]
    assert "nvidia.com/gpu=1" not in told["devices"]
    assert told["unreadable"][0]["reason"] == LOST and LOST in warnings(told)


def test_at_boot_too(uuids: list[str], run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main() == 0
    assert '"name": "2"' in host.read() and capsys.readouterr().err == f"GPU 1 cannot be read: {LOST}\n"


# choosing


GPUS: tuple[Gpu, ...] = (
    gpu("A30", index=0, uuid="GPU-aa", name="NVIDIA A30", pci_address="0000:07:00.0", serial="15620210000"),
    gpu("A30", index=2, uuid="GPU-cc", name="NVIDIA A30", pci_address="0000:1f:00.0", serial=""),
)
FAILED = Unreadable(1, "GPU-bb", "0000:0f:00.0", "GPU is lost.")
NAMELESS = Unreadable(1, "", "", "GPU is lost.")


@pytest.mark.parametrize("selector", ["1", "gpu-bb", "0f:00.0", "all"])
def test_names_of_the_gpu(selector: str) -> None:
    with pytest.raises(GpuError, match=r"GPU 1 \(0000:0f:00.0, GPU-bb\) cannot be read: GPU is lost. Look"):
        select(GPUS, ["0", selector], (FAILED,))


@pytest.mark.parametrize("failed", [FAILED, NAMELESS])
@pytest.mark.parametrize("selector", ["GPU-dd", "", "3"])
def test_names_of_no_gpu_may_be_its(selector: str, failed: Unreadable) -> None:
    with pytest.raises(GpuError, match=f"'{selector}' names no GPU .* can be read: choose .* GPU is lost."):
        select(GPUS, [selector], (failed,))
    with pytest.raises(GpuError, match=f"'{selector}' names no GPU of this machine that can be read. GPU 1"):
        select((), [selector], (failed,))


def test_names_of_others() -> None:
    assert select(GPUS, ["nvidia a30", "2"], (NAMELESS,)) == GPUS
    assert select(GPUS, ["15620210000"], (FAILED,)) == GPUS[:1]


def test_gpus_are_identified_if_as_many_are_missing() -> None:
    listed = {"0000:07:00.0": "GPU-aa", "0000:0f:00.0": "GPU-bb", "0000:1f:00.0": "GPU-cc"}
    assert identified((NAMELESS,), GPUS, listed) == (FAILED,)
    assert identified((NAMELESS,), GPUS, listed | {"0000:2f:00.0": "GPU-dd"}) == (NAMELESS,)
    assert identified((NAMELESS, NAMELESS), GPUS, listed) == (NAMELESS, NAMELESS)
    both = {"GPU-bb", "GPU-dd"}
    found = identified((NAMELESS, replace(NAMELESS, index=3)), GPUS, listed | {"0000:2f:00.0": "GPU-dd"})
    assert {one.uuid for one in found} == both and [one.index for one in found] == [1, 3]
    reading = Reading(1, "", "", "", {}, {})
    [same] = identified((reading,), GPUS, listed)
    assert (same.uuid, same.pci_address) == ("GPU-bb", "0000:0f:00.0")
    assert identified((NAMELESS,), GPUS, {}) == (NAMELESS,)
