# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of Marathon or Chronos come to, and what is wrong with them."""

from __future__ import annotations

DOCUMENTATION = r"""
name: framework_plan
short_description: Tell what the settings of Marathon or Chronos come to
version_added: 0.1.0
description:
  - Reads the variables of the roles C(marathon) and C(chronos) as the roles do, on the controller.
positional: _input, role
options:
  _input:
    description: The variables of the role without its name in front, and C(host), the name of the machine.
    type: dict
    required: true
  role:
    description: Framework that the settings belong to.
    type: str
    choices: [marathon, chronos]
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: (settings | gpufarm.cluster.framework_plan('marathon')).problems | length == 0
"""

RETURN = r"""
_value:
  description: >-
    C(problems), each a sentence; if there are none,
    C(environment), the text of a file of variables,
    C(unwanted), what the role writes with other settings, C(ensembles), the servers of each ZooKeeper, and
    for Marathon C(secret_environment), the text of another one that nobody else may read,
    for Chronos C(options), the text of the file of options, C(secret), whether it must not be shown, and
    C(command), the words that start it.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos import settings as chronos_settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon import settings as marathon_settings

PLANS = {"marathon": marathon_settings.plan, "chronos": chronos_settings.plan}


def framework_plan(settings: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return what settings come to."""
    return PLANS[role](settings)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any], str], dict[str, Any]]]:
        """Return the filters by name."""
        return {"framework_plan": framework_plan}
