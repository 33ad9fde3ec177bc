"""Machines that an orchestrator names by their addresses are reached as the inventory says."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from harness import CASES
from harness.specs import options

ADDRESS = "192.0.2.2"
NAMING = sorted(f"{role}_controllers" for role in CASES if f"{role}_controllers" in options(role))


@pytest.mark.parametrize("variable", NAMING)
def test_the_controller_is_asked_by_its_name(variable: str) -> None:
    role = variable.removesuffix("_controllers")
    case = replace(CASES[role], elsewhere={"host2": {"ansible_host": ADDRESS}})
    done = case.run(role, {variable: [ADDRESS]})
    assert not done.failed, done.refusal
    asked = {call.host for call in done.calls}
    assert "host2" in asked and ADDRESS not in asked


def test_roles_of_slurm_name_controllers() -> None:
    assert len(NAMING) >= 4
