#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what Slurm has to know of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_machine_info
short_description: Tell what Slurm has to know of a machine
version_added: 0.1.0
description:
  - Reads the name of the machine, its processors and memory, its GPUs and slices by NVML, whether it can run
    notebooks, and which release of Slurm it has.
  - A GPU that cannot be read is an error, as Slurm ends jobs when a machine comes back with fewer GPUs.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
notes:
  - On a machine with GPUs it goes on with the Python in C(/opt/gpufarm/gpu), or needs the package
    C(nvidia-ml-py).
author:
  - gpufarm maintainers (@gpufarm)
seealso:
  - module: gpufarm.cluster.gpu_info
"""

EXAMPLES = r"""
- name: Read the nodes
  gpufarm.cluster.slurm_machine_info:
  delegate_to: "{{ node }}"
  loop: "{{ groups['slurm_nodes'] }}"
  loop_control:
    loop_var: node
  register: nodes
"""

RETURN = r"""
hostname:
  description: Name of the machine without its domain, which is its name in Slurm.
  returned: success
  type: str
  sample: n1
cpus:
  description: Number of processors that the kernel uses, each thread of a core counted.
  returned: success
  type: int
sockets:
  description: Number of sockets.
  returned: success
  type: int
cores_per_socket:
  description: Cores of each socket.
  returned: success
  type: int
threads_per_core:
  description: Threads of each core.
  returned: success
  type: int
memory_mib:
  description: Memory in MiB.
  returned: success
  type: int
devices:
  description:
    - The GPUs. C(model) is the name of the model, C(mig) tells whether MIG mode is on, and C(slices) has the
      names of the profiles of its slices.
  returned: success
  type: list
  elements: dict
  sample: [{model: NVIDIA A30, mig: true, slices: [1g.6gb, 1g.6gb, 2g.12gb]}]
features:
  description:
    - Features of the node in Slurm, by which jobs choose it. C(notebooks) is that of a machine with the role
      P(gpufarm.cluster.notebook_node#role).
  returned: success
  type: list
  elements: str
  sample: [notebooks]
installed_release:
  description: Release of Slurm that is installed; empty if there is none.
  returned: success
  type: str
  sample: "24.11"
offered_release:
  description: Release of Slurm that apt would install by its lists; empty if there is none.
  returned: success
  type: str
  sample: "24.11"
nvml_plugin:
  description: Whether apt offers or has the plugin by which Slurm finds GPUs.
  returned: success
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io import machine


def main() -> None:
    """Run the module."""
    machine.prepare()
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        module.exit_json(changed=False, **machine.read())
    except GpuError as error:
        module.fail_json(msg=str(error))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"The kernel does not tell processors and memory: {error}.")


if __name__ == "__main__":
    main()
