#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: properties that machines of one kind ought to have in common."""

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_properties_info
short_description: Tell properties that machines of one kind ought to have in common
version_added: 0.1.0
description:
  - Reads board and BIOS, processors, memory, kernel and its settings, packages, units, mounts, networks,
    InfiniBand, accounts, limits of jobs, and what the role P(gpufarm.cluster.benchmarks#role) has measured.
  - The filter P(gpufarm.cluster.uniform_report#filter) compares them. GPUs are read by
    M(gpufarm.cluster.gpu_info).
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Read the machines
  gpufarm.cluster.machine_properties_info:
  register: machine
"""

RETURN = r"""
properties:
  description:
    - The properties by name. The part before the first point is the section, such as V(kernel).
    - Properties that a machine does not have are missing.
  returned: success
  type: dict
  sample: {kernel.release: 6.12.48+deb13-amd64, processor.threads: 64, memory.mib: 515000}
links:
  description: Machines to which links were measured, by the names of the results.
  returned: success
  type: dict
  sample: {mpi.10.1.0.0/16.gb_s: gpu02}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform.io.read import links, read


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, properties=read(), links=links())


if __name__ == "__main__":
    main()
