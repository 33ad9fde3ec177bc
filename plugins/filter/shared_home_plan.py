# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of users' homes come to."""

from __future__ import annotations

DOCUMENTATION = r"""
name: shared_home_plan
short_description: Tell what the settings of users' homes come to
version_added: 0.1.0
description:
  - Reads the variables of the role C(shared_home) as the role does, on the controller.
positional: _input
options:
  _input:
    description: The variables of the role without C(shared_home_).
    type: dict
    required: true
  file_system:
    description: Type of the file system that is mounted; empty when none is.
    type: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: (settings | gpufarm.cluster.shared_home_plan('nfs')).problems | length == 0
"""

RETURN = r"""
_value:
  description: >-
    C(problems), each a sentence; if there are none,
    C(units), texts of units by name; C(mounts), the mount as M(gpufarm.cluster.mount_validate) takes it;
    C(command), the settings of the command that makes homes; C(packages), what the mount and the limits
    need.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import (
    settings as shared_home_settings,
)


def shared_home_plan(settings: Mapping[str, Any], file_system: str) -> dict[str, Any]:
    """Return what settings come to."""
    problems = shared_home_settings.problems(settings)
    if problems:
        return {"problems": problems}
    return {
        "problems": [],
        "units": shared_home_settings.unit(settings, file_system),
        "mounts": shared_home_settings.mounts(settings, file_system),
        "command": shared_home_settings.command_settings(settings),
        "packages": shared_home_settings.packages(settings),
    }


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any], str], dict[str, Any]]]:
        """Return the filters by name."""
        return {"shared_home_plan": shared_home_plan}
