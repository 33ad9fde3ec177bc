# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup that returns the variables of a role in the types that its argument spec says."""

from __future__ import annotations

DOCUMENTATION = r"""
name: role_variables
short_description: Return the variables of a role of this collection in the types of its argument spec
version_added: 0.1.0
description:
  - Ansible checks variables against an argument spec and leaves them as they were given, so that
    C(-e port=443) stays a text, and C(-e enabled=false) a text that is not empty. Roles compute with what
    this lookup returns.
  - The same holds for what is in lists and dicts. A text in place of a list or dict is refused, as roles
    would take it for its letters.
  - A list that is given for a text is its words, and becomes them with blanks between.
options:
  _terms:
    description: The role, without the name of the collection.
    type: list
    elements: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Tell how much memory a server gets, also when it was given as a text
  ansible.builtin.debug:
    msg: "{{ 2 * lookup('gpufarm.cluster.role_variables', 'zookeeper').heap_mb }} MiB"
"""

RETURN = r"""
_raw:
  description: For each role its variables by their names without that of the role.
  type: list
  elements: dict
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError, AnsibleLookupError
from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS
from ansible.module_utils.common.yaml import yaml_load
from ansible.plugins.lookup import LookupBase
from ansible.release import __version__ as release

# As meta/runtime.yml says, at whose `requires_ansible` Ansible only warns.
OLDEST = (2, 19)
RAW: Mapping[str, Any] = {"type": "raw"}
CONTAINERS = {"list": "a list, also of one value", "dict": "a dict"}
ROLES = Path(__file__).parents[2] / "roles"


class WrongType(AnsibleLookupError):  # type: ignore[misc]  # Ansible has no types
    """A value that is not of its type and cannot be read as such."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible has no types
    """The lookup of this file."""

    def run(
        self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the variables of each role.

        Raises:
            AnsibleError: ansible-core is older than 2.19; its templates make text of numbers, and data of
                text that looks like JSON, so roles would write wrong files.
        """
        if tuple(map(int, release.split(".")[:2])) < OLDEST:
            raise AnsibleError(
                f"gpufarm.cluster needs ansible-core 2.19 or later, and this is {release}; install one."
            )
        return [converted(role, variables or {}, self._templar) for role in terms]


def converted(role: str, variables: Mapping[str, Any], templar: Any) -> dict[str, Any]:
    """Return the variables of a role in their types, by their names without that of the role.

    Args:
        role: the role.
        variables: those of the host.
        templar: evaluates them.

    Raises:
        WrongType: one is not of its type and cannot be read as such.
        AnsibleError: one cannot be evaluated.
    """
    known = options(role)
    given = templar.template({name: variables[name] for name in known if name in variables})
    return {name[len(role) + 1 :]: typed(name, value, known[name]) for name, value in given.items()}


def check_types(role: str, variables: Mapping[str, Any], templar: Any) -> None:
    """Check those variables of a role that can be evaluated by themselves.

    Args:
        role: the role.
        variables: those of the host. Some may need what the role finds out later; these are left out.
        templar: evaluates them.

    Raises:
        WrongType: one is not of its type and cannot be read as such.
    """
    for name, option in options(role).items():
        try:
            value = templar.template(variables.get(name))
        except AnsibleError:
            continue
        typed(name, value, option)


@cache
def options(role: str) -> dict[str, dict[str, Any]]:
    """Return the argument spec of each variable of a role.

    Raises:
        AnsibleLookupError: this collection has no such role.
    """
    path = ROLES / role / "meta" / "argument_specs.yml"
    try:
        specs = yaml_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AnsibleLookupError(f"The role {role} has no argument spec: {error}") from error
    found: dict[str, dict[str, Any]] = specs["argument_specs"]["main"]["options"]
    return found


def typed(name: str, value: Any, option: Mapping[str, Any]) -> Any:
    """Return a value, and all that is in it, in the types that an argument spec says.

    Args:
        name: how messages call the value.
        value: the value; none stays none. A list for a text is its words.
        option: the part of the argument spec: ``type``, for a list ``elements``, and ``options`` of dicts.

    Raises:
        WrongType: it is not of this type and cannot be read as such.
    """
    if value is None:
        return None
    kind = option.get("type", "str")
    if kind in CONTAINERS and isinstance(value, str):
        # Without the text, which may be a secret.
        raise WrongType(f"{name} is a text; give {CONTAINERS[kind]}, which -e takes as JSON.")
    if kind == "str" and isinstance(value, list):
        # Ansible would make the text of Python's list of it.
        value = " ".join(map(str, value))
    try:
        value = DEFAULT_TYPE_VALIDATORS[kind](value)
    except (TypeError, ValueError) as error:
        raise WrongType(f"{name} cannot be read as {kind}: {error}") from error
    inner = option.get("options", {})
    if kind == "list":
        element = {"type": option.get("elements", "raw"), "options": inner}
        return [typed(f"{name}[{index}]", one, element) for index, one in enumerate(value)]
    if inner:
        return {key: typed(f"{name}.{key}", one, inner.get(key, RAW)) for key, one in value.items()}
    return value
