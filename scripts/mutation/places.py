"""Which files are changed, and all mistakes that a file may have."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import yaml
from proof.tree import Tree

from mutation import jinja, python, roles
from mutation.mutant import Mutant, mutant

PYTHON = re.compile(
    r"plugins/(module_utils|modules|filter|lookup|inventory)/.*\.py"
    r"|packages/.*\.py"
    r"|tosca/gpufarm/.*\.py"
)
ROLE = re.compile(r"roles/(\w+)/(tasks|handlers|defaults|vars)/.*\.yml")
TEMPLATE = re.compile(r"roles/(\w+)/templates/.*\.j2")


def mutants(path: str, tree: Tree) -> Iterator[Mutant]:
    """Return all mutants of a file, in the order of their places; none of files of other kinds.

    Args:
        path: path of the file from the root of the repository.
        tree: the files of the repository.
    """
    text = tree.texts[path]
    if PYTHON.fullmatch(path):
        found = python.edits(text)
    elif match := ROLE.fullmatch(path):
        found = roles.edits(text, _others(match[1], tree))
    elif match := TEMPLATE.fullmatch(path):
        found = jinja.edits(text, _others(match[1], tree))
    else:
        return
    yield from (mutant(path, text, edit) for edit in found)


def _others(role: str, tree: Tree) -> Mapping[str, str]:
    """For each variable of a role the next one of the same type."""
    specs = yaml.load(tree.texts.get(f"roles/{role}/meta/argument_specs.yml", "{}"), yaml.CSafeLoader)
    options = specs.get("argument_specs", {}).get("main", {}).get("options", {})
    by_type: dict[str, list[str]] = {}
    for name, option in options.items():
        by_type.setdefault(str(option.get("type", "str")), []).append(name)
    return {
        name: other
        for names in by_type.values()
        if len(names) > 1
        for name, other in zip(names, [*names[1:], names[0]], strict=True)
    }
