# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of a Lustre server, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lustre_server_problem
short_description: Tell what is wrong with the settings of a Lustre server
version_added: 0.1.0
description:
  - Reads the variables of the role C(lustre_server) as the role does, on the controller.
positional: _input, host, machine
options:
  _input:
    description: The variables of the role without C(lustre_server_).
    type: dict
    required: true
  host:
    description: Name of the machine in the inventory.
    type: str
    required: true
  machine:
    description: What M(gpufarm.cluster.lustre_info) returns, to judge the machine in place of the variables.
    type: dict
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse what cannot work
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.lustre_server_problem(inventory_hostname) == ''
    fail_msg: "{{ settings | gpufarm.cluster.lustre_server_problem(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: A sentence for everything that is wrong; empty when the settings can work.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import layout


def lustre_server_problem(
    settings: Mapping[str, Any], host: str, machine: Mapping[str, Any] | None = None
) -> str:
    """Return what is wrong with settings, or with a machine for them; an empty text when nothing is."""
    if machine is not None:
        return layout.machine_problem(settings, machine, host)
    return layout.problem(settings, host)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters by name."""
        return {"lustre_server_problem": lustre_server_problem}
