"""A hub is checked together with what the same run sets up before it: the cluster, and groups of users."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness import CASES
from harness.stubs import has, said

HUB = {
    "jupyterhub_spawner": "slurm",
    "jupyterhub_login": "pam",
    "jupyterhub_pam_groups": ["users"],
}
LOOKED_UP = ("Validate | Look up the groups of files", "Validate | Look up the groups that may log in")
AWAY = {**said(""), "rc": 1, "stderr": "Unable to contact slurm controller"}


@pytest.mark.parametrize("there", [(), ("/usr/bin/sbatch", "/usr/bin/unmunge")])
@pytest.mark.parametrize("later", [True, False])
def test_a_cluster_that_comes_first_is_not_missed(there: tuple[str, ...], later: bool) -> None:
    case = CASES["jupyterhub"].with_answers(
        {
            "gpufarm.cluster.path_info": has(*there) if there else {"found": {}},
            "Validate | Query partitions, settings and accounts": AWAY,
        }
    )
    given = {**HUB, "validate_later": ["slurm"]} if later else HUB
    checked = case.run("jupyterhub", given, entry="validate")
    assert bool(checked.failed) != later, checked.refusal
    if not later:
        assert ("Slurm does not answer" if there else "no client of Slurm") in checked.refusal


def test_settings_are_checked_with_a_cluster_that_comes_first() -> None:
    given = {**HUB, "jupyterhub_collaborative": True, "validate_later": ["slurm"]}
    checked = CASES["jupyterhub"].run("jupyterhub", given, entry="validate")
    assert "jupyterhub_collaborative is true" in checked.refusal


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"jupyterhub_login": "pam", "jupyterhub_pam_groups": ["gpu-users"]}, "host1 has no group gpu-users"),
        ({"jupyterhub_file_groups": {"physics": "gpu-users"}}, "gpu-users of jupyterhub_file_groups is no"),
    ],
)
def test_groups_that_come_first_are_not_missed(variables: dict[str, Any], words: str) -> None:
    case = CASES["jupyterhub"].with_answers(
        {name: {**said(""), "rc": 2} for name in LOOKED_UP},
    )
    checked = case.run("jupyterhub", variables, entry="validate")
    assert words in checked.refusal
    later = case.run("jupyterhub", {**variables, "validate_later": ["users"]}, entry="validate")
    assert not later.failed, later.refusal
