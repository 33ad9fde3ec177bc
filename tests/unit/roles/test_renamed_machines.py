"""Roles that write the name of a machine run again when it has another one."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from harness.life import set_up


@pytest.mark.parametrize("role", ["slurm_accounting", "slurm_node"])
def test_the_name_of_the_machine_is_in_the_record(role: str) -> None:
    host, _ = set_up(role)
    assert "/proc/sys/kernel/hostname" in host.made[role]["reads"]
