# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with a list of users, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: user_accounts_problems
short_description: Tell what is wrong with a list of users
version_added: 0.1.0
description:
  - Reads the list as M(gpufarm.cluster.user_accounts) does, on the controller.
positional: _input
options:
  _input:
    description: The users, each a map.
    type: list
    elements: dict
    required: true
  allow_key_options:
    description: Whether options may stand before keys.
    type: bool
    default: false
  name_suffix:
    description: Suffix of the names of all accounts.
    type: str
    default: ""
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse a list that nobody can have
  ansible.builtin.assert:
    that: users | gpufarm.cluster.user_accounts_problems | length == 0
    fail_msg: "{{ users | gpufarm.cluster.user_accounts_problems | join(' ') }}"
"""

RETURN = r"""
_value:
  description: Sentences that say what is wrong; empty when the list can be read.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.request import problems


def user_accounts_problems(users: Any, allow_key_options: bool = False, name_suffix: str = "") -> list[str]:
    """Return what is wrong with a list of users, one sentence each."""
    if not isinstance(users, list) or not all(isinstance(user, dict) for user in users):
        return ["The users are no list of maps; give one map for each, with os_user_name and more."]
    return problems(users, allow_key_options, name_suffix)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filters by name."""
        return {"user_accounts_problems": user_accounts_problems}
