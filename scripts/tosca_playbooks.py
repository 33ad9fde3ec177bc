"""The operations of a node type as playbooks: its role, and its attributes from the result of the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from tosca_properties import COLLECTION


def operations(definition: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the playbooks of a node type of the source by the names of the operations.

    Args:
        definition: the type. `play` has the words of the plays: `name`, and `vars` where they need some.
            An attribute has in `from` where its value is, unless it has the same name in the role's result.
    """
    role = definition["metadata"]["role"].removeprefix(COLLECTION)
    set_up = [{"name": "Set up", "ansible.builtin.include_role": {"name": f"{COLLECTION}{role}"}}]
    attributes = {
        name: f"{{{{ {attribute.get('from', f'{role}_result.{name}')} }}}}"
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
    remove = {
        "name": "Remove",
        "ansible.builtin.include_role": {"name": f"{COLLECTION}{role}"},
        "vars": {f"{role}_state": "absent"},
    }
    return {
        "configure": [_play(definition, "", set_up)],
        "delete": [_play(definition, ", removal", [remove])],
    }


def _play(definition: dict[str, Any], what: str, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    on_controller = definition["metadata"].get("runs_on") == "controller"
    words = definition["play"]
    return {
        "name": f"{words['name']}{what}",
        "hosts": f"{{{{ gpufarm_hosts | default('{'localhost' if on_controller else 'all'}') }}}}",
        "gather_facts": False,
        **({} if on_controller else {"become": True}),
        **({"vars": words["vars"]} if "vars" in words else {}),
        "tasks": tasks,
    }
