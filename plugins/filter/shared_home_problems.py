# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of users' homes, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: shared_home_problems
short_description: Tell what is wrong with the settings of users' homes
version_added: 0.1.0
description:
  - Reads the variables of the role C(shared_home) as the role does, on the controller.
positional: _input
options:
  _input:
    description: The variables of the role without C(shared_home_).
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.shared_home_problems == []
    fail_msg: "{{ settings | gpufarm.cluster.shared_home_problems | join(' ') }}"
"""

RETURN = r"""
_value:
  description: What is wrong, one sentence each; empty when the settings can work.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import (
    settings as shared_home_settings,
)


def shared_home_problems(settings: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with settings."""
    return shared_home_settings.problems(settings)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], list[str]]]:
        """Return the filters by name."""
        return {"shared_home_problems": shared_home_problems}
