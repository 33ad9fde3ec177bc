"""The filter that plans for roles: its table, its documentation, and roles that it does not know."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.filter.plan import DOCUMENTATION, MODULES, UTILITIES, plan

ROOT = Path(__file__).resolve().parents[3]
OPTIONS: dict[str, Any] = yaml.safe_load(DOCUMENTATION)["options"]


def test_the_documentation_names_the_roles_of_the_table() -> None:
    assert OPTIONS["role"]["choices"] == sorted(MODULES)


@pytest.mark.parametrize("role", MODULES)
def test_each_role_has_a_plan_whose_facts_are_documented(role: str) -> None:
    assert (ROOT / "roles" / role).is_dir()
    planner = importlib.import_module(f"{UTILITIES}.{MODULES[role]}").plan
    _settings, *facts = inspect.signature(planner).parameters.values()
    assert {fact.name for fact in facts} <= OPTIONS.keys() - {"_input", "role"}


def test_facts_are_passed_by_their_names() -> None:
    settings = {"partition_flavor": "7x"}
    assert plan(settings, "mig")["problems"][0].startswith("The MIG flavor '7x'")
    with pytest.raises(TypeError):
        plan(settings, "mig", kernels=[])


def test_a_role_without_a_plan_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="no plan for the role marathon_app; name one of"):
        plan({}, "marathon_app")
