"""Roles that only other roles include: callers give what their argument specs say."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROLES = ROOT / "roles"
SHARED = sorted(path.name for path in ROLES.glob("_*"))


def specs(role: str) -> dict[str, Any]:
    """The options of each entry point of a role."""
    found = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    return {entry: one.get("options", {}) for entry, one in found.items()}


def tasks(value: Any) -> Iterator[dict[str, Any]]:
    """Every task, also those in blocks and plays."""
    for one in value if isinstance(value, list) else []:
        yield one
        for part in ("block", "rescue", "always", "tasks"):
            yield from tasks(one.get(part))


def calls(role: str) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """The files that include a role, each with the entry point and the variables that it gives."""
    for pattern in ("roles/*/tasks/**/*.yml", "playbooks/**/*.yml", "lab/layers/*/*.yml"):
        for path in ROOT.glob(pattern):
            for task in tasks(yaml.load(path.read_text(), yaml.CBaseLoader)):
                included = task.get("ansible.builtin.include_role", {})
                if included.get("name") == f"gpufarm.cluster.{role}":
                    yield path, included.get("tasks_from", "main"), task.get("vars", {})


# One machine goes through the members of its cluster, or the two of a pair ask each other.
ASKED_BY_FEW = {"_framework", "app_gateway", "benchmarks", "mesos_agent", "mesos_master", "monitoring"}
ASKED_BY_FEW |= {"slurm_job", "slurm_rest", "zookeeper"}


@pytest.mark.parametrize(
    "role", sorted(path.name for path in ROLES.iterdir() if path.name not in ASKED_BY_FEW)
)
def test_many_machines_do_not_ask_one_at_the_same_moment(role: str) -> None:
    """A server of SSH gives a connection ten sessions, and refuses others (MaxSessions in sshd_config(5))."""
    for path in (ROLES / role).glob("tasks/**/*.yml"):
        for task in tasks(yaml.load(path.read_text(), yaml.CBaseLoader)):
            if task.get("delegate_to", "localhost") != "localhost" and "run_once" not in task:
                assert 0 < int(task["throttle"]) < 10, (path, task["name"])


@pytest.mark.parametrize("role", SHARED)
def test_callers_give_an_entry_point_all_that_it_needs_and_nothing_else(role: str) -> None:
    found = list(calls(role))
    for path, entry, given in found:
        options = specs(role)[entry]
        required = {name for name, option in options.items() if option.get("required")}
        # Others are parts of what these are made of.
        known = {name for name in given if name.startswith(f"{role}_")}
        assert required <= known <= options.keys(), (str(path), entry)
    assert {entry for _, entry, _ in found} == specs(role).keys(), "an entry point that nobody uses"


@pytest.mark.parametrize("role", SHARED)
def test_variables_are_described_and_cannot_be_a_caller_s_own(role: str) -> None:
    for entry, options in specs(role).items():
        for name, option in options.items():
            assert name.startswith(f"{role}_"), (entry, name)
            assert option["description"], (entry, name)


def test_the_shared_role_of_frameworks_knows_none_of_them() -> None:
    users = {path.relative_to(ROLES).parts[0] for path, _, _ in calls("_framework")}
    assert len(users) > 1
    for path in ROLES.glob("_framework/*/*"):
        if path.name != "argument_specs.yml":
            assert not [user for user in users if user in path.read_text().lower()], path
