#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: measure a machine, and keep what was measured."""

from __future__ import annotations

DOCUMENTATION = r"""
module: benchmark
short_description: Measure a machine and keep the results
version_added: 0.1.0
description:
  - Measures processors and memory with the HPC Challenge, a file system with fio, or a link to another
    machine with ping and iperf3, with perftest, or with MPI. The programs must be installed.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
  - gpufarm.cluster.benchmark
options:
  processors:
    description: Measure processors and memory, with a matrix of so many MiB for each core.
    type: int
  folder:
    description: Measure the file system of this folder, an absolute path.
    type: path
  file_mib:
    description: Size in MiB of the file that is written and read in O(folder).
    type: int
    default: 1024
  link:
    description: Measure a link to a machine at which iperf3 serves.
    type: dict
    suboptions: &link
      peer:
        description: Name of the other machine.
        type: str
        required: true
      network:
        description: The network in CIDR notation, which names the values.
        type: str
        required: true
      bind:
        description: Address of this machine in the network.
        type: str
        required: true
      address:
        description: Address of the other machine in the network.
        type: str
        required: true
      port:
        description: Port at which it serves.
        type: int
        default: 5201
  rdma:
    description: Measure RDMA to a machine on which perftest serves.
    type: dict
    suboptions:
      <<: *link
      device:
        description: Name of this machine's RDMA adapter in the network, such as V(mlx5_0).
        type: str
        required: true
  mpi:
    description: Measure a link to a machine on which mpirun waits for this one.
    type: dict
    suboptions:
      peer:
        description: Name of the other machine.
        type: str
        required: true
      network:
        description: The network in CIDR notation, which names the values, and over which processes talk.
        type: str
        required: true
      bind:
        description: Address of this machine in the network.
        type: str
        required: true
      address:
        description: Address of the other machine in the network.
        type: str
        required: true
      interfaces:
        description: >-
          Interfaces of this machine in the network. Their counters prove that processes talk over it.
        type: list
        elements: str
        required: true
      place:
        description: Where mpirun is reached, from the command that it gives to its agent.
        type: str
        default: ''
seealso:
  - module: gpufarm.cluster.gpu_benchmark
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Measure processors and memory
  gpufarm.cluster.benchmark:
    processors: 256
  register: measured

- name: Show what has become slower
  ansible.builtin.debug:
    msg: "{{ measured.worse }}"
"""

RETURN = r"""
measured:
  description: Whether it was measured, or would be in check mode.
  returned: success
  type: bool
values:
  description: All values that are kept, by name. Names tell the units; GB and MB are powers of ten.
  returned: success
  type: dict
  sample: {hpl_gflops: 1890.4, memory_gb_s: 210.7}
worse:
  description: Values that are more than ten percent worse than the baseline, as sentences.
  returned: success
  type: list
  elements: str
  sample: [memory_gb_s is 160.1, 24% worse than 210.7 at first]
links:
  description: Machines to which links were measured, by the names of the values.
  returned: success
  type: dict
  sample: {mpi.10.1.0.0/16.gb_s: gpu02}
"""

from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io.between import between
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io.measure import OPTIONS, measure
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io.rdma import rdma
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.part import Part

ENDS = {name: {"type": "str", "required": True} for name in ("peer", "network", "bind", "address")}
LINK = {**ENDS, "port": {"type": "int", "default": 5201}}
RDMA = {**LINK, "device": {"type": "str", "required": True}}
PARTS = ("processors", "folder", "link", "rdma", "mpi")
MPI = {
    **ENDS,
    "interfaces": {"type": "list", "elements": "str", "required": True},
    "place": {"type": "str", "default": ""},
}


def part(options: dict[str, Any]) -> Part:
    """Return what is asked for."""
    for name, measured in (("link", run.link), ("rdma", rdma), ("mpi", between)):
        if link := options[name]:
            end = f"{link.pop('peer')} {link['address']}"
            return Part(f"{name}.{link['network']}.", end, partial(measured, **link))
    if options["folder"]:
        folder = options["folder"]
        return Part(f"{folder}.", "", partial(run.files, folder, options["file_mib"]))
    return Part("hpl_", "", partial(run.processors, options["processors"]))


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **OPTIONS,
            "processors": {"type": "int"},
            "folder": {"type": "path"},
            "file_mib": {"type": "int", "default": 1024},
            "link": {"type": "dict", "options": LINK},
            "rdma": {"type": "dict", "options": RDMA},
            "mpi": {"type": "dict", "options": MPI},
        },
        mutually_exclusive=[PARTS],
        required_one_of=[PARTS],
        supports_check_mode=True,
    )
    measure(module, [part(module.params)])


if __name__ == "__main__":
    main()
