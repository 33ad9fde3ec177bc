# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of a Mesos master or agent come to, and what is wrong with them."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mesos_plan
short_description: Tell what the settings of a Mesos master or agent come to
version_added: 0.1.0
description:
  - Reads the variables of the roles C(mesos_master) and C(mesos_agent) as the roles do, on the controller.
positional: _input, program, machine
options:
  _input:
    description: The variables of the role without its name in front.
    type: dict
    required: true
  program:
    description: Program that the settings belong to.
    type: str
    choices: [master, agent]
    required: true
  machine:
    description: >-
      Machine of an agent, with C(name), C(cgroup), C(glibc), C(kernel), C(gpus) and C(folders);
      without it, only the settings are checked.
    type: dict
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: (settings | gpufarm.cluster.mesos_plan('agent')).problems | length == 0
"""

RETURN = r"""
_value:
  description: >-
    C(problems), each a sentence; if there are none, C(environment), the text of the environment file,
    C(options), the options by name, C(files) and C(secret_files), contents by name, C(unwanted), what the
    role writes with other settings, and for masters C(quorum) and C(warning).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import agent, master

LOGIC = {
    "master": (master.all_problems, master.plan),
    "agent": (agent.all_problems, agent.plan),
}


def mesos_plan(
    settings: Mapping[str, Any], program: str, machine: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what settings come to."""
    find, plan = LOGIC[program]
    problems = find(settings) + (agent.machine_problems(settings, machine) if machine else [])
    return {"problems": problems} if problems else {"problems": [], **plan(settings)}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"mesos_plan": mesos_plan}
