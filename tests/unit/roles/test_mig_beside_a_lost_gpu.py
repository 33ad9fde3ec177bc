"""The role mig on a machine of which a GPU that this run did not ask for has lost its partitions."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness import Run
from harness.run import run_role
from harness.stubs import PARTITIONED

START = "Service | Start the unit that makes partitions"
RESTART = "Service | Restart units that use partitions"
REPORT = "Service | Report the GPUs without their partitions"
BARE = "Unable to restart service gpufarm-mig.service: Job failed."
LOST = "GPU 1 (0000:0f:00.0, GPU-bb) cannot be read: GPU is lost. Reset the GPU or reboot the machine."


def mig(lacking: str, failing: str = START) -> Run:
    """Run the role where the unit does not start and its program names a GPU, or none."""
    answers: dict[str, Any] = {
        failing: {"failed": True, "msg": BARE},
        "Service | Read the GPUs of the stored layout without their partitions": {
            "rc": 1 if lacking else 0,
            "stdout": "",
            "stderr": f"{lacking}\n" if lacking else "",
        },
        "Configure | Partition the GPUs": {**PARTITIONED, "changed": True},
    }
    settings = {"mig_partition_flavor": "7x 1g.10gb", "mig_gpus": ["0"]}
    return run_role("mig", settings, answers=answers)


@pytest.mark.parametrize("failing", [START, RESTART])
def test_the_selected_gpus_are_served_and_the_lost_one_is_named(failing: str) -> None:
    run = mig(LOST, failing)
    assert not run.failed, run.refusal
    [said] = [step.message for step in run.steps if step.name.endswith(REPORT)]
    assert LOST in said and "gpufarm-mig.service failed" in said
    assert any(step.name.endswith("Verify | Report the slices") for step in run.steps)


def test_a_unit_that_fails_for_another_reason_stops_the_role() -> None:
    run = mig("")
    assert run.failed
    assert BARE in run.refusal and "journalctl -u gpufarm-mig.service" in run.refusal
