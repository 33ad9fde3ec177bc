"""200 random changes, each interrupted at every call: nothing in use is lost, and one more run is enough."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from mig_transitions import Interruption, Transitions
from simulated_machine import prepare

CHANGES = 50  # of each model


@pytest.mark.parametrize("model", ["a30", "a100-80gb", "h100-80gb", "rtx-pro-6000"])
def test_every_interruption_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    machine = prepare(tmp_path, monkeypatch)
    monkeypatch.delenv("NVMLSIM_LOG")
    machine.control("init", "", "", model)
    transitions = Transitions(machine, model, Interruption(monkeypatch))
    changes = runs = 0
    while changes < CHANGES:
        taken = transitions.check()
        changes += taken > 1
        runs += taken
    assert runs > 10 * CHANGES
