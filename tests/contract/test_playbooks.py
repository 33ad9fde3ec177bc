"""Contracts between playbooks: settings are checked before anything is set up."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
IMPORT = "ansible.builtin.import_playbook"
INCLUDE = "ansible.builtin.include_role"


def load(name: str) -> list[dict[str, Any]]:
    """A playbook with those that it imports in their places."""
    found: list[dict[str, Any]] = []
    for play in yaml.safe_load((PLAYBOOKS / f"{name}.yml").read_text()):
        found += load(play[IMPORT].rpartition(".")[2]) if IMPORT in play else [play]
    return found


def groups(play: dict[str, Any]) -> set[str]:
    return {group for group in play["hosts"].split(":") if not group.startswith("!")}


def validated(name: str) -> dict[str, set[str]]:
    """The groups on which each role's input is checked."""
    found: dict[str, set[str]] = defaultdict(set)
    for play in load(name):
        for task in play.get("tasks", []):
            if "validate_role" in task.get("vars", {}):
                found[task["vars"]["validate_role"]] |= groups(play)
    return found


def set_up(name: str) -> dict[str, set[str]]:
    """The groups on which each role is run."""
    found: dict[str, set[str]] = defaultdict(set)
    for play in load(name):
        roles = [role["role"] for role in play.get("roles", [])]
        roles += [
            task[INCLUDE]["name"] for task in play.get("tasks", []) if {*task.get(INCLUDE, {})} == {"name"}
        ]
        for role in roles:
            found[role.rpartition(".")[2]] |= groups(play)
    return found


@pytest.mark.parametrize(
    ("name", "validation"),
    [
        ("site", "validate"),
        ("mesos_cluster", "validate_mesos_cluster"),
        ("slurm_cluster", "validate_slurm_cluster"),
    ],
)
def test_what_is_set_up_is_checked_first_on_the_same_machines(name: str, validation: str) -> None:
    assert set_up(name)
    for role, where in set_up(name).items():
        assert where <= validated(validation)[role], role
    imported = [
        play[IMPORT] for play in yaml.safe_load((PLAYBOOKS / f"{name}.yml").read_text()) if IMPORT in play
    ]
    before = ["gpufarm.cluster.records"] if name == "site" else []
    assert imported[: len(before) + 1] == [*before, f"gpufarm.cluster.{validation}"]


def test_a_role_is_left_out_where_its_record_was_compared() -> None:
    compared: dict[str, list[str]] = {}
    for name in ("site", "slurm_cluster"):
        first = load(name)[0]
        [own] = first["vars"].values()
        assert groups(first) == own.keys()
        for group, roles in own.items():
            assert all(group in where for role, where in set_up(name).items() if role in roles)
        compared |= own
    for path in PLAYBOOKS.glob("*.yml"):
        for play in yaml.safe_load(path.read_text()):
            for task in play.get("tasks", []):
                role = task.get(INCLUDE, {}).get("name", "").rpartition(".")[2]
                role = role or task.get("vars", {}).get("validate_role", "")
                if role in {one for roles in compared.values() for one in roles}:
                    conditions = [task["when"]] if isinstance(task["when"], str) else task["when"]
                    assert conditions[0] == f"'{role}' not in gpufarm_record.done | default({{}})"


@pytest.mark.parametrize("role", ["slurm_node", "slurm_login"])
def test_a_record_that_asks_the_controllers_is_compared_after_they_have_changed(role: str) -> None:
    text = [yaml.safe_dump(play) for play in load("slurm_cluster")]
    changed = max(number for number, play in enumerate(text) if "cluster.slurm_controller\n" in play)
    compared = [number for number, play in enumerate(text) if "slurm_cluster_roles" in play and role in play]
    run = max(number for number, play in enumerate(text) if f"cluster.{role}\n" in play)
    assert changed < compared[-1] < run


@pytest.mark.parametrize("role", validated("validate"))
def test_input_is_checked_against_the_same_list_of_variables(role: str) -> None:
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())[
        "argument_specs"
    ]
    assert specs["validate"]["options"] == specs["main"]["options"]


@pytest.mark.parametrize("name", ["validate", "validate_mesos_cluster", "validate_slurm_cluster"])
def test_the_last_play_refuses_for_all_machines(name: str) -> None:
    last = load(name)[-1]
    assert last["hosts"] == "{{ gpufarm_hosts | default('all') }}" and last["any_errors_fatal"]
    (task,) = last["tasks"]
    assert "validate_problems" in task["vars"]["validate_table"] and task["run_once"]
