"""The operations of a node type as playbooks: its role, and its attributes from the result of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from tosca_properties import COLLECTION

# For whom operations are run; the deployer names the deployment instead.
OWNER = "an orchestrator"
# Tasks of a role, and the playbook that runs them, which read what the node's tasks have printed.
CONSOLE = "console"


def operations(
    definition: dict[str, Any], *, recorded: bool, left_out: bool, console: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the playbooks of a node type of the source by the names of the operations.

    Args:
        definition: the type. `play` has the name of the plays, and `become` if a role that runs on the
            controller works on a machine of the inventory by itself. An attribute has in `from` where its
            value is, unless it has the same name in the role's result.
        recorded: whether the role keeps a record of what it made, and for whom.
        left_out: whether the role has nothing to do while its record holds.
        console: whether the role tells what its tasks have printed.
    """
    role = definition["metadata"]["role"].removeprefix(COLLECTION)
    set_up: list[dict[str, Any]] = [
        {"name": "Set up", "ansible.builtin.include_role": {"name": f"{COLLECTION}{role}"}}
    ]
    if left_out:
        set_up[0]["when"] = f"'{role}' not in gpufarm_record.done | default({{}})"
    attributes = {
        name: f"{{{{ {attribute.get('from', _result(role, name))} }}}}"
        for name, attribute in definition.get("attributes", {}).items()
    }
    if attributes:
        set_up.append(
            {
                "name": "Return the attributes",
                "when": "not ansible_check_mode",
                "ansible.builtin.set_stats": {"data": attributes},
            }
        )
        if left_out:  # a role that runs sets a fact, which comes before this
            set_up[1]["vars"] = {f"{role}_result": f"{{{{ gpufarm_record.done.{role} }}}}"}
    remove = {
        "name": "Remove",
        "ansible.builtin.include_role": {"name": f"{COLLECTION}{role}"},
        "vars": {f"{role}_state": "absent"},
    }
    found = {
        "configure": [_play(definition, recorded, "", set_up)],
        "delete": [_play(definition, recorded, ", removal", [remove])],
    }
    if console:
        found[CONSOLE] = [_play(definition, False, ", console", _console(role))]
    return found


def _console(role: str) -> list[dict[str, Any]]:
    """Tasks of a playbook beside the operations, which reads what the tasks of a node have printed."""
    return [
        {
            "name": "Read the console",
            "ansible.builtin.include_role": {"name": f"{COLLECTION}{role}", "tasks_from": CONSOLE},
        },
        {
            "name": "Return the tasks",
            "ansible.builtin.set_stats": {"data": {"tasks": f"{{{{ {role}_console_result.tasks }}}}"}},
        },
    ]


def _result(role: str, name: str) -> str:
    """Return an expression for a value in the result of a role. Of a map, `.values` is a method in Jinja."""
    return f"{role}_result['{name}']" if hasattr(dict, name) else f"{role}_result.{name}"


def _play(
    definition: dict[str, Any], recorded: bool, what: str, tasks: list[dict[str, Any]]
) -> dict[str, Any]:
    on_controller = definition["metadata"].get("runs_on") == "controller"
    words = definition["play"]
    return {
        "name": f"{words['name']}{what}",
        "hosts": f"{{{{ gpufarm_hosts | default('{'localhost' if on_controller else 'all'}') }}}}",
        "gather_facts": False,
        **({} if on_controller and not words.get("become") else {"become": True}),
        **({"vars": {"gpufarm_owner": OWNER}} if recorded else {}),
        "tasks": tasks,
    }
