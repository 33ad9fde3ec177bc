"""GPUs are measured, each for itself, and those that compute or copy wrongly are told."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import cuda, gpus
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import measure as measurement
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import holders
from ansible_collections.gpufarm.cluster.plugins.modules import gpu_benchmark
from simulated_machine import Machine

Make = Callable[..., Machine]
ONE = {"fp32_tflops", "memory_gb_s", "from_gpu_gb_s", "to_gpu_gb_s"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a library with the calls of CUDA's driver."""
    built = tmp_path_factory.mktemp("cuda") / cuda.LIBRARY
    source = Path(__file__).with_name("libcuda.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", built, source], check=True)
    return built


@pytest.fixture
def run(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Measure the GPUs, with small buffers and few rounds, as it is the processor that does the work."""
    monkeypatch.setattr(cuda, "LIBRARY", str(library))
    monkeypatch.setattr(cuda, "BYTES", 2**16)
    monkeypatch.setattr(cuda, "LOOPS", 4)
    monkeypatch.setattr(gpus, "LIMIT", 20.0)
    monkeypatch.setattr(measurement, "busy", lambda: "")

    def call(**arguments: Any) -> Any:
        given = {"results": str(tmp_path / "results.json"), **arguments}
        with patch_module_args(given), pytest.raises(SystemExit):
            gpu_benchmark.main()
        return json.loads(capsys.readouterr().out)

    return call


def names(index: int, *others: int) -> set[str]:
    return {f"gpu.{index}.{name}" for name in (*ONE, *(f"to.{other}.gb_s" for other in others))}


def uuid(index: int) -> str:
    pynvml.nvmlInit()
    found: str = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))
    return found


def test_each_gpu_and_each_link_between_two_is_measured_once(
    run: Callable[..., Any], make_machine: Make
) -> None:
    make_machine("a100-40gb", "a100-40gb", "a100-40gb")
    told = run()
    assert told["changed"] and set(told["values"]) == names(0, 1, 2) | names(1, 0, 2) | names(2, 0, 1)
    assert min(told["values"].values()) > 0 and told["worse"] == []
    again = run()
    assert not again["changed"] and again["values"] == told["values"]
    assert run(measure="again")["changed"]


def test_check_mode_measures_no_gpu(
    run: Callable[..., Any], make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-40gb")
    monkeypatch.setattr(cuda, "LIBRARY", "libnone.so")
    told = run(_ansible_check_mode=True)
    assert told["changed"] and told["measured"] and not told["values"]


def test_a_gpu_in_mig_mode_is_left_out(run: Callable[..., Any], make_machine: Make) -> None:
    make_machine("a100-40gb", "a100-40gb")
    pynvml.nvmlInit()
    pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)
    assert set(run()["values"]) == names(1)


def test_a_gpu_in_use_is_told_and_the_others_are_measured(
    run: Callable[..., Any], make_machine: Make
) -> None:
    machine = make_machine("a100-40gb", "a100-40gb", "a100-40gb")
    machine.simgpu("process", "start", "--gpu", "1", "--pid", "4242")
    told = run()
    assert told["failed"] and set(told["values"]) == names(0, 2) | names(2, 0)
    assert told["msg"].startswith("GPU 1 is used by ") and "4242" in told["msg"]
    machine.simgpu("process", "stop", "4242")
    assert set(run()["values"]) == names(0, 1, 2) | names(1, 0, 2) | names(2, 0, 1)


def test_a_gpu_that_a_notebook_holds_without_using_it_is_left_alone(
    run: Callable[..., Any], make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-40gb", "a100-40gb")
    notebook = holders.Holder("the notebook of ada", (), (uuid(1),))
    monkeypatch.setattr(gpus, "mark", lambda found: holders.with_holders(tuple(found), [notebook]))
    told = run()
    assert told["msg"].startswith("GPU 1 is used by the notebook of ada; ")
    assert set(told["values"]) == names(0)


def test_a_gpu_in_use_that_has_its_results_is_no_failure(run: Callable[..., Any], make_machine: Make) -> None:
    machine = make_machine("a100-40gb")
    run()
    machine.simgpu("process", "start", "--gpu", "0", "--pid", "4242")
    assert not run()["changed"]


def test_a_lost_gpu_is_told_and_the_others_are_measured(run: Callable[..., Any], make_machine: Make) -> None:
    make_machine("a100-40gb", "a100-40gb").control("set", "0", "lost", "1")
    told = run()
    assert told["failed"] and set(told["values"]) == names(1)
    assert told["msg"].startswith("GPU 0 ") and "cannot be read" in told["msg"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("computes", "it computes wrongly: sums that ought to be equal are not"),
        ("copies", "it copies wrongly: data have changed on the way"),
        ("fails", "cuCtxSetCurrent answered: an illegal memory access was encountered"),
        ("hangs", "the measurement did not end within 1 s"),
    ],
)
def test_a_gpu_that_works_wrongly_has_no_results(
    run: Callable[..., Any], make_machine: Make, monkeypatch: pytest.MonkeyPatch, fault: str, reason: str
) -> None:
    make_machine("a100-40gb", "a100-40gb")
    monkeypatch.setenv("LIBCUDA_FAULT", f"{uuid(0)} {fault}")
    monkeypatch.setattr(gpus, "LIMIT", 1.0 if fault == "hangs" else 20.0)
    told = run()
    assert told["failed"] and f"GPU 0 was not measured: {reason}." in told["msg"]
    assert not [name for name in told["values"] if name.startswith("gpu.0.")]
    assert set(told["values"]) == names(1) and "link" not in told["msg"]


def test_a_link_that_works_wrongly_is_told(
    run: Callable[..., Any], make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-40gb", "a100-40gb")
    monkeypatch.setenv("LIBCUDA_FAULT", f"{uuid(1)} sends")
    told = run()
    assert "The link from GPU 1 to GPU 0 was not measured: it copies wrongly" in told["msg"]
    assert set(told["values"]) == names(0, 1) | names(1)


def test_a_replaced_gpu_is_measured_and_compared_anew(
    run: Callable[..., Any], make_machine: Make, tmp_path: Path
) -> None:
    make_machine("a100-40gb")
    run()
    path = tmp_path / "results.json"
    kept = json.loads(path.read_text())
    kept["baseline"] = {name: value * 1000 for name, value in kept["baseline"].items()}
    kept["ends"] = dict.fromkeys(kept["ends"], "UUID of another board")
    path.write_text(json.dumps(kept))
    told = run()
    assert told["changed"] and told["worse"] == []


def test_a_gpu_that_became_slower_is_named(
    run: Callable[..., Any], make_machine: Make, tmp_path: Path
) -> None:
    make_machine("a100-40gb")
    run()
    path = tmp_path / "results.json"
    kept = json.loads(path.read_text())
    kept["baseline"]["gpu.0.memory_gb_s"] *= 1000
    path.write_text(json.dumps(kept))
    # Other values vary, as this machine's processor does the work of a GPU.
    assert "gpu.0.memory_gb_s" in [line.split()[0] for line in run(measure="again")["worse"]]


def test_without_the_library_of_cuda_the_reason_is_told(
    run: Callable[..., Any], make_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-40gb")
    monkeypatch.setattr(cuda, "LIBRARY", "libnone.so")
    assert "GPU 0 was not measured: the driver's library for CUDA cannot be loaded" in run()["msg"]


def test_a_machine_whose_driver_does_not_answer_is_refused(
    run: Callable[..., Any], make_machine: Make
) -> None:
    make_machine("a100-40gb").simgpu("driver", "unload")
    assert run()["failed"]
