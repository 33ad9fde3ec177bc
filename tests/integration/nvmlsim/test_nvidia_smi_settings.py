# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of simulated GPUs with the real nvidia-smi: it sets them, is refused, and reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import Machine

FIELDS = (
    *("persistence_mode", "power.limit", "clocks.sm", "compute_mode", "accounting.mode"),
    *("ecc.mode.current", "ecc.mode.pending"),
)


def read(machine: Machine, smi: Path) -> list[str]:
    done = machine.run(smi, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
    assert done.returncode == 0, done.stdout + done.stderr
    return [cell.strip() for cell in done.stdout.split(",")]


def test_it_sets_and_reads(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    before = read(machine, smi)
    assert before == ["Disabled", "400.00", "210", "Default", "Disabled", "Enabled", "Enabled"]
    for words in (
        ("-pm", "1"),
        ("-pl", "300"),
        ("-lgc", "1200,1410"),
        ("-lmc", "1593,1593"),
        ("-c", "EXCLUSIVE_PROCESS"),
        ("-am", "1"),
        ("-e", "0"),
    ):
        done = machine.run(smi, *words)
        assert done.returncode == 0, (words, done.stdout + done.stderr)
    assert read(machine, smi) == [
        *("Enabled", "300.00", "1200", "Exclusive_Process", "Enabled", "Enabled", "Disabled")
    ]
    for words in (("-rgc",), ("-rmc",)):
        assert machine.run(smi, *words).returncode == 0
    assert read(machine, smi)[2] == "210"


@pytest.mark.parametrize(
    ("model", "words"),
    [("a100-80gb", ("-pl", "500")), ("t4", ("-lmc", "5001,5001")), ("a100-80gb", ("-lgc", "1410,1200"))],
)
def test_it_is_refused(machine: Machine, smi: Path, model: str, words: tuple[str, str]) -> None:
    machine.simgpu("init", model)
    before = read(machine, smi)
    machine.run(smi, *words)
    assert read(machine, smi) == before


def test_it_lists_the_clocks(machine: Machine, smi: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    done = machine.run(smi, "-q", "-d", "SUPPORTED_CLOCKS")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Graphics") == 81 and "1593 MHz" in done.stdout
