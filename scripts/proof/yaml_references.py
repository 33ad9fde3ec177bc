"""References in a YAML file: playbooks, tasks, variables, scenarios, TOSCA templates."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from proof.names import COLLECTION, Names, Reference, strings

# Files of a role that are read when a play with it in its list of roles is.
PARSED = re.compile(r"/(main|argument_specs)\.yml$|/(defaults|vars)/main/")
# Beside an operation; the deployer runs it to read what tasks have printed (tosca/gpufarm/console.py).
CONSOLE = "console.yml"
NODE_TYPE = re.compile(r"\btosca\.nodes\.[\w.]+")


def references(path: str, text: str, names: Names) -> Iterator[Reference]:
    """Find what a YAML file names.

    Args:
        path: path of the file.
        text: its content.
        names: what names mean.

    Raises:
        yaml.YAMLError, ValueError: the file cannot be read.
    """
    for document in yaml.load_all(text, yaml.CSafeLoader):
        if isinstance(document, dict) and "node_types" in document and "topology_template" not in document:
            # Of a library a template needs the operations of the types that it uses, and all imports.
            for entry in document.get("imports", []):
                yield from names.path(str(entry), path)
            continue
        if path.startswith("playbooks/") and isinstance(document, list):
            for play in document:
                groups = _groups(play)
                yield from (replace(found, groups=groups) for found in _references(play, path, names))
                yield from _parsed(play, path, names)
        else:
            yield from _references(document, path, names)
        if path.startswith("tosca/playbooks/"):
            yield from names.path(CONSOLE, path)
        if isinstance(document, dict) and "topology_template" in document:
            for name in sorted(set(NODE_TYPE.findall(text))):
                yield from names.node_type(name)
        if any(f"{COLLECTION}{{{{" in string for string in strings(document)):
            for string in strings(document):  # the role's name is in a variable or in a loop of this file
                yield from names.role(string) if string in names.roles else ()


def _groups(play: dict[str, Any]) -> frozenset[str]:
    """The groups that a play is for; none if it is for machines that only a run knows."""
    hosts = str(play.get("hosts", "all"))
    # Of a group such as `name[0]` the members do not matter here.
    groups = frozenset(one.partition("[")[0] for one in re.split("[:,]", hosts))
    return frozenset() if "{{" in hosts or groups & {"all", "localhost"} else groups


def _parsed(play: dict[str, Any], path: str, names: Names) -> Iterator[Reference]:
    """Files of a play that Ansible reads before it knows whether a machine is in its group."""
    for name in play.get("vars_files", []):
        yield from names.path(name, path)
    for role in _roles(play.get("roles", [])):
        for found in names.role(role):
            if PARSED.search(found.path):
                yield replace(found, followed=False)


def _roles(entries: list[Any]) -> Iterator[str]:
    """The names in a list of roles."""
    for entry in entries:
        yield str(entry.get("role", entry.get("name")) if isinstance(entry, dict) else entry)


def _references(value: Any, path: str, names: Names) -> Iterator[Reference]:
    if isinstance(value, str):
        yield from names.text(value, path)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item, path, names)
    elif isinstance(value, dict):
        for key, item in value.items():
            word = str(key).rpartition(".")[2]
            if word in ("include_role", "import_role") and isinstance(item, dict):
                yield from names.role(str(item.get("name")), str(item.get("tasks_from", "main")))
            elif word in ("roles", "dependencies") and isinstance(item, list):
                for role in _roles(item):
                    yield from names.role(role)
            else:
                yield from names.playbook(str(item)) if word == "import_playbook" else ()
                yield from names.role(item) if word.endswith("_role") and isinstance(item, str) else ()
                yield from names.text(str(key), path)
                yield from _references(item, path, names)
