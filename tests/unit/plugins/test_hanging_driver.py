"""A call to the driver that does not return: it ends in time, is named, and holds up no other GPU."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._cdi.io import command, host
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import restore
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import guarded, offers, session
from ansible_collections.gpufarm.cluster.plugins.modules import (
    cdi_spec,
    gpu_info,
    gpu_settings,
    gpu_validate,
    mig_partition,
    mig_validate,
)
from simulated_machine import Machine

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]
TIMEOUT = 3


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a module with some arguments; returns its result."""
    monkeypatch.setattr(mig_partition, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(gpu_settings, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(gpu_settings, "FILE", tmp_path / "settings.json")
    monkeypatch.setattr(offers, "LIBRARY", os.environ.get("NVMLSIM_LIBRARY", ""))
    monkeypatch.setattr(host, "SPECIFICATION", tmp_path / "cdi" / "nvidia.yaml")
    monkeypatch.setattr(host, "FOLDERS", ())
    monkeypatch.setattr(host, "_run", lambda _command: "")

    def run_module(module: Any, **arguments: Any) -> dict[str, Any]:
        with patch_module_args({"call_timeout": TIMEOUT} | arguments), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.fixture
def gpus(make_machine: Make) -> tuple[Gpu, ...]:
    """Three GPUs."""
    make_machine("a100-80gb", "a100-80gb", "a100-80gb")
    with session.session() as nvml:
        return nvml.gpus()


@pytest.fixture
def hang(gpus: tuple[Gpu, ...], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Returns what lets a call hang that is about GPU 1."""

    def let_hang(name: str) -> None:
        real, uuid_of = getattr(pynvml, name), pynvml.nvmlDeviceGetUUID

        def call(handle: Any, *arguments: Any) -> Any:
            if uuid_of(handle) == gpus[1].uuid:
                time.sleep(3600)
            return real(handle, *arguments)

        call.__name__ = name
        monkeypatch.setattr(pynvml, name, call)

    return let_hang


def reason(call: str) -> str:
    return f"{call} of GPU 1 did not return within {TIMEOUT} s."


@pytest.mark.parametrize("call", ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTemperature"])
def test_gpu_info_tells_the_others(
    gpus: tuple[Gpu, ...], hang: Callable[[str], None], run: Run, call: str
) -> None:
    hang(call)
    told = run(gpu_info)
    assert [one["index"] for one in told["gpus"]] == [0, 2]
    assert all(one["readings"]["temperature"] for one in told["gpus"])
    [failed] = told["unreadable"]
    assert failed == {
        "index": 1,
        "uuid": gpus[1].uuid,
        "pci_address": gpus[1].pci_address,
        "reason": reason(call),
    }
    assert reason(call) in json.dumps(told["warnings"])


def test_a_request_that_names_the_gpu_is_refused(hang: Callable[[str], None], run: Run) -> None:
    hang("nvmlDeviceGetMemoryInfo")
    for module in (gpu_info, gpu_validate):
        assert reason("nvmlDeviceGetMemoryInfo") in run(module, gpus=["1"])["msg"]
    assert run(gpu_validate, gpus=["0", "2"], count=2)["checks"][0]["ok"]


def test_other_gpus_are_partitioned(gpus: tuple[Gpu, ...], hang: Callable[[str], None], run: Run) -> None:
    hang("nvmlDeviceGetMemoryInfo")
    told = run(mig_partition, flavor="7x 1g.10gb", gpus=["0", "2"])
    assert told["changed"] and len(told["slices"]) == 14
    assert reason("nvmlDeviceGetMemoryInfo") in run(mig_partition, flavor="7x 1g.10gb")["msg"]


def test_partitions_are_made_at_boot_on_others(
    gpus: tuple[Gpu, ...], hang: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "locked", contextlib.nullcontext)
    monkeypatch.setattr(restore, "Guarded", lambda: guarded.Guarded(TIMEOUT))
    hang("nvmlDeviceGetMigMode")
    stored = [{"gpu": one.uuid, "partitions": [{"profile": "7g.80gb", "start": 0}]} for one in gpus]
    [problem] = restore.restore(stored)
    assert reason("nvmlDeviceGetMigMode") in problem and gpus[1].uuid in problem


def test_a_hang_in_a_change_says_what_may_be_left(
    gpus: tuple[Gpu, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setenv("NVMLSIM_FAULT", "nvmlDeviceCreateGpuInstanceWithPlacement@3=hang")
        message = run(mig_partition, flavor="7x 1g.10gb", gpus=["1"])["msg"]
    call = "nvmlDeviceCreateGpuInstanceWithPlacement"
    assert message.startswith(f"{reason(call)} The partitions of {gpus[1]} may be changed in part.")
    assert message.endswith("Then run again.")
    told = run(mig_partition, flavor="7x 1g.10gb", gpus=["1"])
    assert told["changed"] and len(told["slices"]) == 7


def test_a_hang_before_the_first_change_says_so(
    gpus: tuple[Gpu, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = session.session

    @contextlib.contextmanager
    def late(calls: Any = None) -> Any:
        with real(calls) as nvml:
            calls.report("nvmlDeviceGetHandleByUUID", 0)
            time.sleep(3600)
            yield nvml

    monkeypatch.setattr(mig_partition.session, "survey", lambda _calls: survey)
    with real() as nvml:
        survey = nvml.survey()
    monkeypatch.setattr(mig_partition.session, "session", late)
    assert "did not return within 3 s. Nothing was changed." in run(mig_partition, flavor="7x 1g.10gb")["msg"]


def test_containers_get_the_others(
    hang: Callable[[str], None], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang("nvmlDeviceGetMemoryInfo")
    told = run(cdi_spec)
    assert "nvidia.com/gpu=0" in told["devices"] and "nvidia.com/gpu=1" not in told["devices"]
    assert told["unreadable"][0]["reason"] == reason("nvmlDeviceGetMemoryInfo")
    monkeypatch.setattr(command, "Guarded", lambda: guarded.Guarded(TIMEOUT))
    assert command.main() == 0 and '"name": "2"' in host.read()


@pytest.mark.parametrize("module", [gpu_info, gpu_validate, mig_partition, cdi_spec])
def test_a_driver_that_hangs_at_once_is_told(
    gpus: tuple[Gpu, ...], run: Run, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: time.sleep(3600))
    arguments = {"flavor": "None"} if module is mig_partition else {}
    assert run(module, **arguments)["msg"].startswith(f"nvmlInit did not return within {TIMEOUT} s. Look")


def test_partitions_are_checked_for_others(
    gpus: tuple[Gpu, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVMLSIM_FAULT", "nvmlDeviceGetMigMode@2=hang")
    told = run(mig_validate, flavor="7x 1g.10gb")["msg"]
    assert told.startswith("GPU 1 ") and f"did not return within {TIMEOUT} s" in told


def test_a_gpu_that_is_lost_between_survey_and_readings_is_unreadable(
    gpus: tuple[Gpu, ...], run: Run, make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = session.Nvml.survey, []

    def lose(nvml: session.Nvml) -> Any:
        found = real(nvml)
        lost[0].control("set", "1", "lost", "1")
        return found

    lost.append(Machine(Path(os.environ["NVMLSIM_STATE"])))
    monkeypatch.setattr(session.Nvml, "survey", lose)
    told = run(gpu_info)
    assert [one["index"] for one in told["gpus"]] == [0, 2]
    [failed] = told["unreadable"]
    assert (failed["uuid"], failed["pci_address"]) == (gpus[1].uuid, gpus[1].pci_address)
    assert "GPU_IS_LOST" in failed["reason"]


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_time_that_is_none_is_refused(gpus: tuple[Gpu, ...], run: Run, timeout: int) -> None:
    assert "call_timeout is not above 0" in run(gpu_info, call_timeout=timeout)["msg"]


def test_other_gpus_get_their_settings(gpus: tuple[Gpu, ...], hang: Callable[[str], None], run: Run) -> None:
    hang("nvmlDeviceGetPowerManagementLimitConstraints")
    told = run(gpu_settings, settings=[{"gpus": ["all"], "power_limit": "300"}])
    assert told["changed"] and [one["uuid"] for one in told["gpus"]] == [gpus[0].uuid, gpus[2].uuid]
    [failed] = told["unreadable"]
    assert failed == {
        "index": 1,
        "uuid": gpus[1].uuid,
        "pci_address": gpus[1].pci_address,
        "reason": reason("nvmlDeviceGetPowerManagementLimitConstraints"),
    }


def test_a_hang_while_settings_change_keeps_none_of_the_others_from_theirs(
    gpus: tuple[Gpu, ...], hang: Callable[[str], None], run: Run
) -> None:
    hang("nvmlDeviceSetPowerManagementLimit")
    told = run(gpu_settings, settings=[{"gpus": ["all"], "power_limit": "300"}])
    assert reason("nvmlDeviceSetPowerManagementLimit") in told["msg"]
    assert f"The settings of {gpus[1]} may be changed in part." in told["msg"]
    pynvml.nvmlInit()
    limits = [
        pynvml.nvmlDeviceGetPowerManagementLimit(pynvml.nvmlDeviceGetHandleByIndex(index)) // 1000
        for index in range(3)
    ]
    pynvml.nvmlShutdown()
    assert limits == [300, 400, 300]


def test_beside_a_gpu_that_hangs_none_is_searched_by_its_uuid(
    gpus: tuple[Gpu, ...], hang: Callable[[str], None], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVML may open all GPUs while it searches, the one that hangs among them."""

    def search(_uuid: str) -> Any:
        time.sleep(3600)

    hang("nvmlDeviceGetMemoryInfo")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", search)
    told = run(gpu_info)
    assert [one["index"] for one in told["gpus"]] == [0, 2]
    assert [one["index"] for one in told["unreadable"]] == [1]
