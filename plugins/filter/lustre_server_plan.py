# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of a Lustre server come to."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lustre_server_plan
short_description: Tell what the settings of a Lustre server come to
version_added: 0.1.0
description:
  - Makes the units, the files and the targets of one server from the variables
    of the role C(lustre_server).
positional: _input, host, names, elsewhere, machine
options:
  _input:
    description: The variables of the role without C(lustre_server_).
    type: dict
    required: true
  host:
    description: Name of the machine in the inventory.
    type: str
    required: true
  names:
    description: Addresses of hosts from M(gpufarm.cluster.lustre_info); without it, names are not resolved.
    type: dict
  elsewhere:
    description: Targets that another server has mounted, as M(gpufarm.cluster.lustre_target) tells.
    type: list
    elements: str
  machine:
    description: Result of M(gpufarm.cluster.lustre_info); without it, only the settings are checked.
    type: dict
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: (settings | gpufarm.cluster.lustre_server_plan(inventory_hostname)).problems | length == 0
"""

RETURN = r"""
_value:
  description:
    - C(problems), each a sentence; if there are none,
      C(targets), what M(gpufarm.cluster.lustre_target) takes; C(names), hosts to look up; C(units), texts of
      units by name; C(first), C(started) and C(standby), names of units; C(lnet) and C(modprobe), texts of
      files; C(mounts), what M(gpufarm.cluster.mount_validate) takes; C(pools) and C(quotas), what
      M(gpufarm.cluster.lustre_settings) takes.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import layout


def lustre_server_plan(
    settings: Mapping[str, Any],
    host: str,
    names: Mapping[str, Sequence[str]] | None = None,
    elsewhere: Sequence[str] = (),
    machine: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what settings come to as plain data."""
    problems = layout.problems(settings, host)
    if machine and not problems:
        problems = layout.machine_problems(settings, machine, host)
    plan = {} if problems else layout.plan(settings, host, names, elsewhere)
    return {"problems": problems, **plan}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"lustre_server_plan": lustre_server_plan}
