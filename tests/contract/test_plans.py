"""Plans of roles: the filter names the module of each role, and a role asks for no plan of another role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.filter.plan import DOCUMENTATION, MODULES, UTILITIES, plan

ROOT = Path(__file__).resolve().parents[2]
OPTIONS: dict[str, Any] = yaml.safe_load(DOCUMENTATION)["options"]


def test_the_documentation_names_the_roles_of_the_table() -> None:
    assert OPTIONS["role"]["choices"] == sorted(MODULES)


@pytest.mark.parametrize("role", MODULES)
def test_each_role_has_a_plan_whose_facts_are_documented(role: str) -> None:
    assert (ROOT / "roles" / role).is_dir()
    planner = importlib.import_module(f"{UTILITIES}.{MODULES[role]}").plan
    _settings, *facts = inspect.signature(planner).parameters.values()
    assert {fact.name for fact in facts} <= OPTIONS.keys() - {"_input", "role"}


@pytest.mark.parametrize("role", MODULES)
def test_a_role_asks_for_its_own_plan_alone(role: str) -> None:
    """The module of its own plan is the only one that scripts/proof counts as an input of a role."""
    texts = [path.read_text() for path in (ROOT / "roles" / role).rglob("*.y*ml")]
    named = {name for text in texts for name in re.findall(r"gpufarm\.cluster\.plan\('(\w+)'", text)}
    # Frameworks of Mesos have a role in common, which gets the name of theirs.
    assert named == ({role} if role not in ("chronos", "marathon") else set())


def test_facts_are_passed_by_their_names() -> None:
    settings = {"partition_flavor": "7x"}
    assert plan(settings, "mig")["problems"][0].startswith("The MIG flavor '7x'")
    with pytest.raises(TypeError):
        plan(settings, "mig", kernels=[])


def test_a_role_without_a_plan_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="no plan for the role marathon_app; name one of"):
        plan({}, "marathon_app")
