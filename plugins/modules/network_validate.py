#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: compare the interfaces of a machine with what is declared about them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_validate
short_description: Check that interfaces are as declared
version_added: 0.1.0
description:
  - Compares interfaces with what is declared about them, and fails with all differences at once.
  - Links and partners need some seconds, so it looks again until all is well or the time is over.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
attributes:
  check_mode:
    support: full
    description: Only reads.
options:
  interfaces:
    description: >-
      Facts that must hold for each interface, as C(expected) of the filter
      P(gpufarm.cluster.plan#filter) for the role P(gpufarm.cluster.network#role) has it.
    type: list
    elements: dict
    required: true
  timeout:
    description: Seconds that all may take to be well.
    type: float
    default: 30
seealso:
  - module: gpufarm.cluster.network_configuration
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Check the interfaces
  gpufarm.cluster.network_validate:
    interfaces: "{{ (settings | gpufarm.cluster.plan('network')).expected }}"
  vars:
    settings: "{{ lookup('gpufarm.cluster.role_variables', 'network') }}"
"""

RETURN = r"""
interfaces:
  description: Interfaces as they are.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    addresses:
      description: Its addresses with the lengths of their prefixes.
      type: list
      elements: str
    mtu:
      description: Its MTU in bytes.
      type: int
    speed:
      description: Its speed in Mbit/s, 0 if it does not tell it.
      type: int
    partner:
      description: Hardware address of the partner of LACP; empty without LACP.
      type: str
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._network import machine
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io import read


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "interfaces": {"type": "list", "elements": "dict", "required": True},
            "timeout": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    wanted: list[dict[str, Any]] = module.params["interfaces"]
    end = time.monotonic() + module.params["timeout"]
    try:
        while True:
            links, speeds = read.links(), read.speeds()
            wrong = machine.deviations(wanted, links, read.routes(), speeds)
            if not wrong or time.monotonic() > end:
                break
            time.sleep(1)
    except read.NetworkError as error:
        module.fail_json(msg=str(error))
    if wrong:
        module.fail_json(
            msg=(
                f"The network is not as declared: {' '.join(wrong)} Correct the cabling, the switch or the "
                "declaration."
            )
        )
    module.exit_json(
        changed=False, interfaces=[machine.summary(one["name"], links, speeds) for one in wanted]
    )


if __name__ == "__main__":
    main()
