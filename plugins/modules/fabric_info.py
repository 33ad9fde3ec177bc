#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the RDMA adapters of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_info
short_description: Look at the RDMA adapters of a machine, their links and interfaces
version_added: 0.1.0
description:
  - Reads adapters of InfiniBand and RoCE with firmware and state of their ports, interfaces with their
    addresses, and whether modules for GPUDirect can be used.
  - A machine without adapters has an empty list.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
attributes:
  check_mode:
    support: full
    description: Only reads.
seealso:
  - module: gpufarm.cluster.machine_properties_info
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Look at the adapters
  gpufarm.cluster.fabric_info:
  register: fabric
"""

RETURN = r"""
adapters:
  description: The adapters.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of its RDMA device, such as V(mlx5_0).
      type: str
    pci:
      description: Address on the PCI bus; empty without hardware.
      type: str
    parent:
      description: Interface that a device without hardware uses; otherwise empty.
      type: str
    firmware:
      description: Version of the firmware; empty if it does not tell one.
      type: str
    guid:
      description: GUID of the node.
      type: str
    ports:
      description: >-
        C(number), C(state), C(physical_state), C(rate) in Gbit/s, C(link_layer), C(interface), and C(errors),
        counters of errors that are not 0.
      type: list
      elements: dict
interfaces:
  description: >-
    Interfaces, each with C(name), C(kind) (V(ethernet), V(infiniband) or V(other)), C(pci), C(mode) of IPoIB,
    and C(addresses) of IPv4 with the lengths of their prefixes.
  returned: success
  type: list
  elements: dict
kernel:
  description: Release of the running kernel.
  returned: success
  type: str
soft_roce:
  description: Whether the kernel has the module of soft RoCE.
  returned: success
  type: bool
gpudirect:
  description: V(absent), V(loaded) or V(usable) for C(nvidia_peermem) and C(gdrdrv).
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._fabric.io import read


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        found, addresses = read.read(), read.addresses()
    except read.FabricError as error:
        module.fail_json(msg=str(error))
    for one in found["interfaces"]:
        one["addresses"] = addresses.get(one["name"], [])
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
