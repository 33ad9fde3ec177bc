"""200 random changes, each interrupted at every call: nothing in use is lost, and one more run is enough."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import slices
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from mig_transitions import Interruption, Transitions
from simulated_machine import prepare

CHANGES = 50  # of each model
GOAL = "1x 3g.40gb, 2x 1c.2g.20gb, 1x 1g.10gb"


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


def change(flavor: str) -> list[str]:
    """Partition the GPU; returns the profiles that it has then."""
    with session.session() as nvml:
        gpus = apply.apply(nvml, [plan_flavor(nvml.gpus()[0], parse_flavor(flavor))]).gpus
    return sorted(one["profile"] for one in slices(gpus))


def test_processes_that_are_killed_leave_what_the_next_one_repairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = prepare(tmp_path, monkeypatch)
    machine.control("init", "", "", "a100-80gb")
    start, killed = machine.state, 0
    while True:
        machine.state = start
        child = os.fork()
        if not child:
            os.environ["NVMLSIM_FAULT"] = f"write@{killed + 1}=kill-after"
            change("7x 1g.10gb")
            change(GOAL)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert change(GOAL) == ["1c.2g.20gb", "1c.2g.20gb", "1g.10gb", "3g.40gb"]
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        killed += 1
    # mode; 7 instances created with what is in them; 6 of these destroyed, 2 created, with what is in them
    assert killed == 1 + 7 * 2 + 6 * 2 + 2 + 3
