"""GPUs of a machine are measured together with nccl-tests, if a site has them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks import nccl
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import cuda, gpus
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import measure as measurement
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io.user import run as run_program
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.part import NotMeasured
from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform.report import report
from ansible_collections.gpufarm.cluster.plugins.modules import gpu_benchmark
from simulated_machine import Machine

Make = Callable[..., Machine]


def row(size: int, time: float, bandwidth: float, *, root: bool = True, wrong: str = "0") -> str:
    """A row as nccl-tests 2.19 prints it, or without the column root as releases before 2.12 did."""
    half = f"  {time:7.2f}  {bandwidth / 1.75:6.2f}  {bandwidth:6.2f}  {wrong:>6}"
    return (
        f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}{'  ' + '    -1' if root else ''}{half}{half}"
    )


def printed(
    ranks: int = 2, rows: Sequence[str] = (row(8, 12.9, 0), row(1 << 30, 4066.0, 462.1)), end: str = "0 OK"
) -> str:
    """All that the program prints, in the form of its source."""
    gpus_of = [
        f"#  Rank {one:2d} Group  0 Pid   1234 on      gpu01 device {one:2d} [0000:{one:02x}:00] NVIDIA H100"
        for one in range(ranks)
    ]
    title = ["size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "#wrong") * 2]
    return "\n".join(
        [
            "# nccl-tests version 2.19.6 nccl-headers=22907 nccl-library=22907",
            "# Collective test starting: all_reduce_perf",
            f"# nThread 1 nGpus {ranks} minBytes 8 maxBytes 1073741824 step: 2(factor)",
            "#",
            "# Using devices",
            *gpus_of,
            "#",
            "# " + "  ".join(f"{one:>8}" for one in title),
            *rows,
            f"# Out of bounds values : {end}",
            "# Avg bus bandwidth    : 210.5 ",
            "#",
            "# Collective test concluded: all_reduce_perf",
            "",
        ]
    )


def test_the_largest_size_tells_the_bandwidth_and_the_smallest_the_time() -> None:
    rows = [row(8, 12.9, 0.0), row(1024, 13.5, 0.13), row(1 << 30, 4066.0, 462.1)]
    assert nccl.values(printed(rows=rows), 2) == {"all_reduce_us": 12.9, "all_reduce_gb_s": 462.1}


def test_rows_of_earlier_releases_are_read() -> None:
    rows = [row(8, 12.9, 0.0, root=False, wrong="0e+00"), row(1 << 20, 90.0, 20.5, root=False, wrong="1e-07")]
    assert nccl.values(printed(rows=rows), 2) == {"all_reduce_us": 12.9, "all_reduce_gb_s": 20.5}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (printed(ranks=1), "1 of 2 GPUs took part"),
        (printed(end="37 FAILED"), "37 sums are wrong"),
        (printed(rows=[]), "it has measured nothing"),
        (printed(rows=[row(8, 12.9, 0.0)]), "it has measured nothing"),
        (printed().partition("# Out of bounds")[0], "it has measured nothing"),
        ("", "0 of 2 GPUs took part"),
    ],
)
def test_what_is_no_measurement_of_all_gpus_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        nccl.values(text, 2)


@pytest.fixture
def tests_folder(tmp_path: Path) -> Path:
    """A folder with a program that answers as that of nccl-tests, and writes down how it was called."""
    program = tmp_path / "nccl" / "all_reduce_perf"
    program.parent.mkdir()
    (tmp_path / "answer").write_text(printed())
    called = '#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $*" >> {0}/called\ncat {0}/answer\n'
    program.write_text(called.format(tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program.parent


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Measure the GPUs; CUDA itself measures nothing."""
    monkeypatch.setattr(measurement, "busy", lambda: "")
    monkeypatch.setattr(cuda, "gpu", lambda _uuid: {"memory_gb_s": 1.0})
    monkeypatch.setattr(cuda, "link", lambda _one, _other: {"gb_s": 1.0})

    def as_user(own: Path, environment: Mapping[str, str], words: Sequence[str], seconds: float) -> str:
        whole = {"PATH": "/usr/bin:/bin", **environment}
        return run_program(
            ["/usr/bin/env", f"--chdir={own}", *(f"{k}={v}" for k, v in whole.items()), *words], seconds
        )

    monkeypatch.setattr(gpus, "run_as", as_user)

    def call(**arguments: Any) -> Any:
        with (
            patch_module_args({"results": str(tmp_path / "results.json"), **arguments}),
            pytest.raises(SystemExit),
        ):
            gpu_benchmark.main()
        return json.loads(capsys.readouterr().out)

    return call


def test_all_gpus_are_measured_together_once(
    run: Any, make_machine: Make, tests_folder: Path, tmp_path: Path
) -> None:
    make_machine("h100-80gb", "h100-80gb")
    told = run(nccl_tests=str(tests_folder))
    assert told["values"]["nccl.all_reduce_gb_s"] == 462.1
    assert told["values"]["nccl.all_reduce_us"] == 12.9
    run(nccl_tests=str(tests_folder))
    (called,) = (tmp_path / "called").read_text().splitlines()
    assert called.split()[0].count("GPU-") == 2 and called.endswith("--ngpus=2")


def test_without_a_folder_or_a_second_gpu_it_is_left_out(
    run: Any, make_machine: Make, tests_folder: Path, tmp_path: Path
) -> None:
    make_machine("h100-80gb", "h100-80gb")
    assert not [name for name in run()["values"] if name.startswith("nccl.")]
    make_machine("h100-80gb")
    told = run(nccl_tests=str(tests_folder))
    assert not [name for name in told["values"] if name.startswith("nccl.")]
    assert not (tmp_path / "called").exists()


def test_gpus_that_became_slower_are_named(
    run: Any, make_machine: Make, tests_folder: Path, tmp_path: Path
) -> None:
    make_machine("h100-80gb", "h100-80gb")
    run(nccl_tests=str(tests_folder))
    (tmp_path / "answer").write_text(printed(rows=[row(8, 13.0, 0), row(1 << 30, 8000.0, 231.0)]))
    told = run(nccl_tests=str(tests_folder), measure="again")
    assert told["worse"] == ["nccl.all_reduce_gb_s is 231, 50% worse than 462.1 at first"]


def test_wrong_sums_and_a_missing_program_are_told(
    run: Any, make_machine: Make, tests_folder: Path, tmp_path: Path
) -> None:
    make_machine("h100-80gb", "h100-80gb")
    (tmp_path / "answer").write_text(printed(end="5 FAILED"))
    told = run(nccl_tests=str(tests_folder))
    assert told["failed"] and "5 sums are wrong" in told["msg"]
    assert "gpu.0.memory_gb_s" in told["values"]
    assert "No such file" in run(nccl_tests="/nowhere")["msg"]


def test_gpus_that_are_in_use_are_not_measured_together(make_machine: Make) -> None:
    machine = make_machine("h100-80gb", "h100-80gb")
    machine.simgpu("process", "start", "--gpu", "0", "--pid", "4242")
    (part,) = [one for one in gpus.parts("/opt/nccl") if one.prefix == "nccl."]
    with pytest.raises(NotMeasured, match="GPU 0 is used"):
        part.measure()


def test_a_slower_machine_is_named_and_plotted() -> None:
    fast, slow = {"benchmark.nccl.all_reduce_gb_s": 462.1}, {"benchmark.nccl.all_reduce_gb_s": 231.0}
    machines = {"gpu01": fast, "gpu02": fast, "gpu03": slow}
    told = report(machines, {}, {"nodes": [*machines]}, {})
    (difference,) = told["differences"]
    assert difference["name"] == "benchmark.nccl.all_reduce_gb_s" and "gpu03" in str(difference)
    assert "nccl.all_reduce_gb_s" in told["page"]
