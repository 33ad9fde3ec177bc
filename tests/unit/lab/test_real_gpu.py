# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report about real GPUs reads only, names nobody, and is compared with the simulator."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lab import gpu_models, real_gpu

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """The report of a machine with one GPU of each model, and the log of its NVML calls."""
    log = tmp_path_factory.mktemp("real-gpu") / "log"
    with pytest.MonkeyPatch.context() as patched, gpu_models.machine():
        patched.setenv("NVMLSIM_LOG", str(log))
        report = real_gpu.Guarded().ask(real_gpu.examine)
    return json.dumps(report), log.read_text().splitlines()


@pytest.fixture
def report(made: tuple[str, list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made[0])
    return found


def compared(
    report: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[int, str]:
    """Run the program on a report; return its exit status and output."""
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    monkeypatch.setattr(sys, "argv", ["real_gpu", "--compare", str(file)])
    return real_gpu.main(), capsys.readouterr().out


def test_nothing_is_changed(made: tuple[str, list[str]]) -> None:
    _report, log = made
    assert log and not [line for line in log if " write " in line]


def test_nobody_can_be_told_from_it(made: tuple[str, list[str]]) -> None:
    text, _log = made
    assert not re.search(r"(GPU|MIG)-[0-9a-f]{8}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", text)


def test_every_model_is_as_the_simulator_has_it(
    report: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(report["gpus"]) == len(gpu_models.KEYS)
    assert compared(report, tmp_path, monkeypatch, capsys) == (0, "nothing differs\n")


def test_what_differs_is_named(
    report: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [h200] = [one for one in report["gpus"] if one["name"] == "NVIDIA H200"]
    h200["profiles"][0]["placements"][0]["start"] = 7
    h200["board"]["power_mw"]["default"] = 650000
    unknown = {**h200, "name": "NVIDIA B300"}
    status, said = compared({**report, "gpus": [h200, unknown]}, tmp_path, monkeypatch, capsys)
    assert status == 1
    assert said.splitlines() == [
        "GPU 0 (NVIDIA H200): profiles[0].placements[0].start: 7, and 0 in the simulator",
        "GPU 0 (NVIDIA H200): board.power_mw.default: 650000, and 700000 in the simulator",
        "GPU 1 (NVIDIA B300): the simulator does not know this model",
    ]


@pytest.mark.parametrize(
    "file", sorted((ROOT / "lab" / "nvmlsim" / "reports").glob("*.json")), ids=lambda file: file.stem
)
def test_the_simulator_says_what_a_real_gpu_said(file: Path) -> None:
    """But for NVLinks: the GPUs of the reports were passed through to virtual machines without them."""
    report = json.loads(file.read_text())
    [gpu] = report["gpus"]
    assert set(gpu["board"]["nvlinks"]) == {"no answer: NOT_SUPPORTED"}
    gpu["board"]["nvlinks"] = [2] * real_gpu.LINKS  # lead to a switch
    gpu["readings"]["told"] = sorted(
        {*gpu["readings"]["told"], "fabric", "nvlink_errors", "nvlink_peers", "nvlinks"}
    )
    assert real_gpu.compare(report) == []


def test_the_page_names_parts_that_a_report_has(report: dict[str, Any]) -> None:
    """And every file of the simulator that infers something."""
    page = (ROOT / "docs" / "unproved.md").read_text()
    parts = set(re.findall(r"\| `([a-z_.]+)` \|$", page, re.MULTILINE))
    for part in parts:
        found: Any = {**report, **report["gpus"][0]}
        for name in part.split("."):
            assert name in found, part
            found = found[name]
    assert parts
    sources = sorted((ROOT / "lab" / "nvmlsim" / "src").glob("*.c"))
    inferring = {one.name for one in sources if re.search("infer", one.read_text(), re.IGNORECASE)}
    assert inferring <= set(re.findall(r"`(\w+\.c)`", page))
