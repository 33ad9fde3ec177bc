# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells the addresses of machines of the inventory."""

from __future__ import annotations

DOCUMENTATION = r"""
name: machine_addresses
short_description: Tell the addresses of machines of the inventory
version_added: 0.1.0
description:
  - Machines of a cluster reach one another by address, as they may not know the names of the inventory.
positional: _input, machines
options:
  _input:
    description: Names of machines in the inventory.
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
- name: Tell the address of the first controller
  ansible.builtin.debug:
    msg: "{{ groups['slurm_controllers'] | gpufarm.cluster.machine_addresses(hostvars) | first }}"
"""

RETURN = r"""
_value:
  description: The value of C(ansible_host) of each, in the same order; its name if that is not set.
  type: list
  elements: str
"""

from collections.abc import Callable

from ansible_collections.gpufarm.cluster.plugins.module_utils._machines import addresses


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filters by name."""
        return {"machine_addresses": addresses}
