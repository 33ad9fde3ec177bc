"""The scenarios' list of a machine passes over what comes by itself, and nothing that a role makes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROGRAM = runpy.run_path(str(Path(__file__).parents[3] / "molecule" / "shared" / "files" / "everything.py"))
passed_over = PROGRAM["passed_over"]


@pytest.mark.parametrize(
    "name",
    ["alternatives.tar.0", "apt.extended_states.0", "dpkg.arch.0", "dpkg.status.0", "dpkg.statoverride.1.gz"],
)
def test_copies_that_dpkg_makes_at_midnight_are_passed_over(name: str) -> None:
    assert passed_over(f"/var/backups/{name}")


@pytest.mark.parametrize("name", ["jupyterhub", "jupyterhub/2026-01-01.tar", "dpkg", "alternatives"])
def test_backups_of_roles_are_listed(name: str) -> None:
    assert not passed_over(f"/var/backups/{name}")
