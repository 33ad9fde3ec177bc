# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells the names in the inventory of machines that are given by name or address."""

from __future__ import annotations

DOCUMENTATION = r"""
name: machine_names
short_description: Tell the names in the inventory of machines
version_added: 0.1.0
description:
  - An orchestrator knows machines by their addresses, and a role has to know their names to ask them.
positional: _input, machines
options:
  _input:
    description: Machines by name or by C(ansible_host). Those that the inventory does not have are left out.
    type: list
    elements: str
    required: true
  machines:
    description: Variables of all machines by their names, which is C(hostvars).
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Tell which machines are meant
  ansible.builtin.debug:
    msg: "{{ ['192.0.2.7', 'master2'] | gpufarm.cluster.machine_names(hostvars) }}"
"""

RETURN = r"""
_value:
  description: Their names in the inventory, in the same order.
  type: list
  elements: str
"""

from collections.abc import Callable

from ansible_collections.gpufarm.cluster.plugins.module_utils._machines import names


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filters by name."""
        return {"machine_names": names}
