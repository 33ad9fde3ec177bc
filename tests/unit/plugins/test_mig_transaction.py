"""A change that fails midway is undone, one that is killed is repaired by the next run."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable

import pytest
from mig_transitions import Interruption, Transitions
from simulated_machine import Machine

CHANGES = 5  # the integration test has many more


def test_every_interruption_is_survived(
    make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine("a30")
    monkeypatch.delenv("NVMLSIM_LOG")
    transitions = Transitions(machine, "unit", Interruption(monkeypatch))
    done = 0
    while done < CHANGES:
        done += transitions.check() > 1
