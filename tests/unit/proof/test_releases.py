"""Which releases a role is proved on follows from the hosts of scenarios and the plays that converge them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from proof.releases import proofs

PLATFORMS = """
platforms:
  - {name: old, groups: [servers]}
  - {name: new, suite: trixie, groups: [servers, others], layers: [hub]}
"""
OLD, NEW = {"bookworm": ["one"]}, {"trixie": ["one"]}
BOTH = OLD | NEW


@pytest.fixture
def proved(tmp_path: Path):
    """Write a scenario with a playbook, and tell what it proves."""

    def of(playbook: str, without: str = "") -> dict[str, dict[str, list[str]]]:
        files = {
            "molecule/one/molecule.yml": PLATFORMS,
            "molecule/one/converge.yml": playbook,
            "molecule/one/tasks/role.yml": "[{ansible.builtin.include_role: {name: gpufarm.cluster.told}}]",
            "playbooks/site.yml": "[{hosts: others, roles: [{role: gpufarm.cluster.listed}]}]",
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return proofs(tmp_path, without)

    return of


@pytest.mark.parametrize(
    ("pattern", "releases"),
    [("all", BOTH), ("old", OLD), ("servers:!others", OLD), ("old:new", BOTH), ("others", NEW)],
)
def test_a_play_proves_its_role_on_the_releases_of_its_hosts(proved, pattern, releases):
    play = f'[{{hosts: "{pattern}", roles: [{{role: gpufarm.cluster.listed}}]}}]'
    assert proved(play) == {"listed": releases}


def test_hosts_with_a_layer_may_be_left_out(proved):
    play = "[{hosts: all, roles: [{role: gpufarm.cluster.listed}]}]"
    assert proved(play, "hub") == {"listed": OLD}
    assert proved(play, "gpu") == {"listed": BOTH}


def test_a_play_without_hosts_proves_nothing(proved):
    assert proved("[{hosts: localhost, roles: [{role: gpufarm.cluster.listed}]}]") == {}


def test_playbooks_of_the_collection_are_followed(proved):
    assert proved("[{ansible.builtin.import_playbook: gpufarm.cluster.site}]") == {"listed": NEW}


@pytest.mark.parametrize(
    ("task", "roles"),
    [
        ("{ansible.builtin.include_role: {name: gpufarm.cluster.told}}", {"told"}),
        ("{block: [{ansible.builtin.include_role: {name: gpufarm.cluster.told}}]}", {"told"}),
        ("{ansible.builtin.include_tasks: tasks/role.yml}", {"told"}),
        ("{ansible.builtin.include_role: {name: 'gpufarm.cluster.{{ item }}'}, loop: [a, b]}", {"a", "b"}),
        ("{ansible.builtin.include_role: {name: gpufarm.cluster.told, tasks_from: validate}}", set()),
    ],
)
def test_roles_that_tasks_include_as_a_whole_are_proved(proved, task, roles):
    assert proved(f"[{{hosts: all, tasks: [{task}]}}]").keys() == roles
