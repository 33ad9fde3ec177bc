# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what the settings of a Lustre client come to."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lustre_client_plan
short_description: Tell what the settings of a Lustre client come to
version_added: 0.1.0
description:
  - Makes the units, the files and the declarations for M(gpufarm.cluster.mount_validate) from the variables
    of the role C(lustre_client).
positional: _input, names, machine, host
options:
  _input:
    description: The variables of the role without C(lustre_client_).
    type: dict
    required: true
  names:
    description: Addresses of hosts from M(gpufarm.cluster.lustre_info); without it, names are not resolved.
    type: dict
  machine:
    description: Result of M(gpufarm.cluster.lustre_info); without it, only the settings are checked.
    type: dict
  host:
    description: Name of the machine.
    type: str
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: (settings | gpufarm.cluster.lustre_client_plan).problems | length == 0
"""

RETURN = r"""
_value:
  description:
    - C(problems), each a sentence; if there are none,
      C(units), texts of units by name; C(mount_units) and C(started), names of units; C(automounts), names
      of units by path; C(lnet) and
      C(modprobe), texts of files; C(places) and C(mounts), what M(gpufarm.cluster.mount_validate) takes;
      C(servers), addresses for each mount; C(names), hosts to look up; C(interfaces), names by network.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import client


def lustre_client_plan(
    settings: Mapping[str, Any],
    names: Mapping[str, Sequence[str]] | None = None,
    machine: Mapping[str, Any] | None = None,
    host: str = "the machine",
) -> dict[str, Any]:
    """Return what settings come to as plain data."""
    problems = client.problems(settings)
    if machine and not problems:
        problems = list(client.machine_problems(settings, machine, host))
    plan = {} if problems else client.plan(settings, names)
    return {"problems": problems, **plan}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"lustre_client_plan": lustre_client_plan}
