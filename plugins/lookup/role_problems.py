# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup that returns what keeps a role from being applied, as far as all roles have it in common."""

from __future__ import annotations

DOCUMENTATION = r"""
name: role_problems
short_description: Return what keeps a role of this collection from being applied to a host
version_added: 0.1.0
description:
  - Finds variables of the host that begin with the name of the role and are none of its variables, such as
    C(jupyterhub_iam_grups). Results of roles, whose names end in C(_result), are left out.
  - Fails for a text in place of a list or dict, also within these, and for other values that are not of their
    types, as nothing can be said then of what depends on them.
  - With O(facts), also finds a distribution on which the role cannot install its packages.
options:
  _terms:
    description: The role, without the name of the collection.
    type: list
    elements: str
    required: true
  facts:
    description: Facts with C(distribution) and C(distribution_version), if the role installs packages.
    type: dict
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse misspelt variables
  ansible.builtin.assert:
    that: problems | length == 0
    fail_msg: "{{ problems | join(' ') }}"
  vars:
    problems: "{{ query('gpufarm.cluster.role_problems', 'mig') }}"
"""

RETURN = r"""
_raw:
  description: A sentence for each problem.
  type: list
  elements: str
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load
from ansible.plugins.lookup import LookupBase
from ansible_collections.gpufarm.cluster.plugins.lookup.role_variables import check_types
from ansible_collections.gpufarm.cluster.plugins.module_utils._distributions import problems
from ansible_collections.gpufarm.cluster.plugins.module_utils._role_variables import misspelt

ROLES = Path(__file__).parents[2] / "roles"


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible has no types
    """The lookup of this file."""

    def run(
        self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        """Return the problems of each role.

        Raises:
            WrongType: a variable is not of its type and cannot be read as such.
        """
        known = variables or {}
        for role in terms:
            check_types(role, known, self._templar)
        facts = kwargs.get("facts")
        roles = [path.parents[1].name for path in ROLES.glob("*/meta/argument_specs.yml")]
        found = [problem for role in terms for problem in misspelt(role, known, options(role), roles)]
        if facts:
            found += [
                problem for role in terms for problem in problems(role, known["inventory_hostname"], facts)
            ]
        return found


@cache
def options(role: str) -> frozenset[str]:
    """Return the names of the variables of a role, of all its entry points."""
    text = (ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    entries = yaml_load(text)["argument_specs"].values()
    return frozenset(name for entry in entries for name in entry.get("options", {}))
