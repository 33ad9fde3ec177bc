"""Variables of roles begin with the name of their role, and the variables that a role reads exist.

Facts, registered variables and `-e NAME=VALUE` win over `vars:` of a task. If a role named such a variable
`problems`, a playbook with a fact of that name would switch off the checks of the role.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, nodes

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
EVERY_ROLE = pytest.mark.parametrize("role", ROLES)
PLAYBOOKS = sorted([*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("tosca/playbooks/**/*.yml")])

BARE = {"when", "changed_when", "failed_when", "until", "that", "break_when"}
INCLUDES = {f"ansible.builtin.{verb}_{what}" for verb in ("include", "import") for what in ("tasks", "role")}
# Variables and functions of Ansible, and variables that plays of this collection give to all roles.
GIVEN = {"groups", "hostvars", "inventory_hostname", "item", "omit", "role_path"}
GIVEN |= {"dict", "lookup", "loop", "namespace", "now", "q", "query", "range"}
GIVEN |= {"gpufarm_owner", "gpufarm_record", "gpufarm_take_over", "validate_later"}


def own(role: str) -> tuple[str, ...]:
    """How the names of a role's variables begin: its own, and arguments of its entry points."""
    name = role.lstrip("_")
    return (f"__{name}_", f"_{name}_") if role.startswith("_") else (f"__{name}_", f"{name}_")


@cache
def files(role: str) -> list[tuple[Path, Any]]:
    """The files of tasks, handlers and variables of a role."""
    paths = [
        path
        for kind in ("tasks", "handlers", "vars")
        for path in (ROOT / "roles" / role / kind).rglob("*.yml")
    ]
    return [(path, yaml.load(path.read_text(), yaml.CSafeLoader)) for path in sorted(paths)]


def tasks(value: Any) -> Iterator[dict[str, Any]]:
    """Every task and block, also those in blocks and plays."""
    for one in value if isinstance(value, list) else []:
        yield one
        for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
            yield from tasks(one.get(part))


def loop_variables(task: dict[str, Any]) -> set[str]:
    """The names of the variables of a task's loop."""
    return {task.get("loop_control", {}).get(name, "item") for name in ("loop_var", "index_var")} - {"item"}


def definitions(task: dict[str, Any]) -> set[str]:
    """The variables that a task has, registers or sets. Loops win over all, but not in what they include."""
    looped = loop_variables(task) if INCLUDES & task.keys() else set()
    registered = {task["register"]} if "register" in task else set()
    facts = task.get("ansible.builtin.set_fact", {}).keys() - {"cacheable"}
    return {
        name
        for name in (*task.get("vars", {}), *looped, *registered, *facts)
        if not name.startswith("ansible_")
    }


def arguments(task: dict[str, Any]) -> tuple[str, ...]:
    """How the names of what a task gives to another role begin."""
    called = [task[name] for name in INCLUDES & task.keys() if name.endswith("_role")]
    return tuple(one["name"].rpartition(".")[2] + "_" for one in called)


def expressions(value: Any, bare: bool = False) -> Iterator[str]:
    """Every template in a value; conditions are expressions without braces."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield str(name)
            yield from expressions(one, name in BARE)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one, bare)
    else:
        yield f"{{{{ {value} }}}}" if bare else str(value)


def used(text: str) -> set[str]:
    """The variables that a template reads and does not set itself."""
    names = list(Environment().parse(text).find_all(nodes.Name)) if "{{" in text or "{%" in text else []
    return {one.name for one in names} - {one.name for one in names if one.ctx != "load"}


@cache
def known() -> set[str]:
    """Every variable that a role defines or that its argument specs list."""
    found: set[str] = set()
    for role in ROLES:
        specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
        for entry in specs["argument_specs"].values():
            found |= entry.get("options", {}).keys()
        for path, content in files(role):
            found |= content.keys() if "vars" in path.parts else set()
            for task in tasks(content):
                found |= definitions(task)
    return found


@EVERY_ROLE
def test_variables_of_tasks_carry_the_name_of_their_role(role: str) -> None:
    for path, content in files(role):
        for task in tasks(content):
            names = definitions(task) - {"gpufarm_record"}
            assert not {name for name in names if not name.startswith((*own(role), *arguments(task)))}, path


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_variables_of_playbooks_are_those_of_roles_or_carry_the_name_of_the_playbook(path: Path) -> None:
    prefix = path.stem.partition("_")[0] + "_"
    for task in tasks(yaml.load(path.read_text(), yaml.CSafeLoader)):
        own_names = {name for name in definitions(task) if name.startswith(prefix)}
        assert definitions(task) <= own_names | known() | GIVEN, task.get("name")


@EVERY_ROLE
# Jinja reads texts as Python does, and Python warns of regular expressions in them.
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_variables_that_a_role_reads_exist(role: str) -> None:
    texts = [(path, path.read_text(), set()) for path in (ROOT / "roles" / role / "templates").rglob("*.j2")]
    for path, content in files(role):
        looped = {name for task in tasks(content) for name in loop_variables(task)}
        texts += [(path, text, looped) for text in expressions(content)]
    for path, text, looped in texts:
        unknown = {name for name in used(text) if not name.startswith("ansible_")}
        assert unknown <= known() | GIVEN | looped, path
