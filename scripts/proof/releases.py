"""On which releases of Debian the scenarios run each role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from proof.names import COLLECTION, strings

# The suites of the bench, oldest first, and what README files call them.
RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13"}


def proofs(root: Path, without: str = "") -> dict[str, dict[str, list[str]]]:
    """Return for each role the suites that scenarios converge it on, each with the names of these scenarios.

    Steps of a scenario before and after `converge` do not count: there, parts of a role may be run.

    Args:
        root: the repository.
        without: a layer; hosts that begin with it do not count.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for scenario in sorted(root.glob("molecule/*/molecule.yml")):
        hosts = _load(scenario)["platforms"]
        for role, names in applied(scenario.with_name("converge.yml"), hosts, root):
            for host in hosts:
                suite = host.get("suite", "bookworm")
                proved = found.setdefault(role, {}).setdefault(suite, [])
                counts = host["name"] in names and without not in host.get("layers", [])
                if counts and scenario.parent.name not in proved:
                    proved.append(scenario.parent.name)
    return {
        role: {suite: by[suite] for suite in RELEASES if by.get(suite)} for role, by in sorted(found.items())
    }


def applied(playbook: Path, hosts: list[dict[str, Any]], root: Path) -> Iterator[tuple[str, set[str]]]:
    """Find the roles that a playbook and those that it imports run, each with the names of its hosts.

    Args:
        playbook: the file.
        hosts: the platforms of the scenario.
        root: the repository.
    """
    for play in _load(playbook):
        imported = play.get("ansible.builtin.import_playbook")
        if imported:
            name = imported.removeprefix(COLLECTION)
            yield from applied(root / "playbooks" / f"{name}.yml", hosts, root)
            continue
        names = _selected(play["hosts"], hosts)
        included = _included(play.get("tasks", []), playbook.parent)
        for role in (*(entry["role"] for entry in play.get("roles", [])), *included):
            if names:
                yield role.removeprefix(COLLECTION), names


def _selected(pattern: str, hosts: list[dict[str, Any]]) -> set[str]:
    """The hosts that a pattern of names and groups selects."""
    found: set[str] = set()
    for word in re.split("[:,]", pattern):
        of_word = {
            host["name"]
            for host in hosts
            if word.lstrip("!") in ("all", host["name"], *host.get("groups", []))
        }
        found = found - of_word if word.startswith("!") else found | of_word
    return found


def _included(tasks: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    """The roles that tasks include as a whole; where the name is in a loop, all that the loop names."""
    for task in tasks:
        yield from _included(task.get("block", []), folder)
        if "ansible.builtin.include_tasks" in task:
            yield from _included(_load(folder / task["ansible.builtin.include_tasks"]), folder)
        role = task.get("ansible.builtin.include_role", {"tasks_from": ""})
        if "tasks_from" not in role:
            yield from strings(task["loop"]) if "{{" in role["name"] else [role["name"]]


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(), yaml.CSafeLoader)
