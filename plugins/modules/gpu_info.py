#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what NVML says about the GPUs of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Tell about NVIDIA GPUs, their partitions and the programs that use them
version_added: 0.1.0
description:
  - Asks the NVIDIA Management Library once for the driver, the GPUs, their state, their MIG profiles and
    partitions, and the programs that use them, and the kernel for the module of the driver.
  - Each GPU is read for itself. GPUs that cannot be read are in RV(unreadable). Any other query that fails is
    an error, never an empty answer.
extends_documentation_fragment:
  - gpufarm.cluster.nvml
  - gpufarm.cluster.nvml.call_timeout
attributes:
  diff_mode:
    support: none
    description: The module reads only.
options:
  gpus:
    description:
      - Which GPUs to tell about. Each item is V(all), V(capable), an index, a UUID, a PCI address, a
        serial number or a model name. An item that names no GPU is an error, V(all) on a machine without GPUs
        too, and so is one that names a GPU that cannot be read.
      - If empty, all GPUs that can be read, and none is no error.
    type: list
    elements: str
    default: []
  facts:
    description:
      - Whether to set the answer as the fact C(ansible_facts.gpufarm_gpus) of the host too, a dictionary of
        RV(driver), RV(gpus), RV(unreadable) and RV(slices). It can be cached, as any fact.
    type: bool
    default: false
seealso:
  - module: gpufarm.cluster.gpu_health
  - module: gpufarm.cluster.gpu_validate
  - module: gpufarm.cluster.mig_partition
"""

EXAMPLES = r"""
- name: Read the GPUs
  gpufarm.cluster.gpu_info:
  register: gpu

- name: Show the slices
  ansible.builtin.debug:
    var: gpu.slices

- name: Show how warm the GPUs are
  ansible.builtin.debug:
    msg: "{{ gpu.gpus | map(attribute='readings.temperature') }}"

- name: Keep it as a fact of the host
  gpufarm.cluster.gpu_info:
    facts: true
"""

RETURN = r"""
driver:
  description:
    - Versions of the driver, of NVML, and of the newest CUDA that the driver runs; its kernel module.
  returned: success
  type: dict
  contains:
    version:
      description: Version of the driver.
      type: str
      sample: 550.163.01
    nvml_version:
      description: Version of NVML.
      type: str
      sample: 12.550.163.01
    cuda_version:
      description: Newest version of CUDA that the driver runs.
      type: str
      sample: "12.4"
    kernel_module_version:
      description: Version of the loaded kernel module, empty if the kernel does not tell it.
      type: str
      sample: 550.163.01
    kernel_module_kind:
      description:
        - Whether the loaded kernel module is V(open) or V(proprietary), empty if the kernel does not tell it.
      type: str
      sample: open
gpus:
  description: The GPUs that can be read, in the order of their indexes.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: Index of the GPU, which may change when hardware does.
      type: int
    minor:
      description: Minor number of the device node C(/dev/nvidia<minor>).
      type: int
    uuid:
      description: UUID of the GPU.
      type: str
    name:
      description: Model.
      type: str
    serial:
      description: Serial number, empty if the GPU has none.
      type: str
    pci_address:
      description: PCI address with domain.
      type: str
    memory_mib:
      description: Memory in MiB.
      type: int
    mig_capable:
      description: Whether the GPU can be partitioned.
      type: bool
    mig_enabled:
      description: Whether MIG mode is on.
      type: bool
    mig_pending:
      description: Whether MIG mode is on after the next reset.
      type: bool
    profiles:
      description: The MIG profiles that the GPU offers.
      type: list
      elements: dict
    instances:
      description: The GPU instances, with their compute instances.
      type: list
      elements: dict
    processes:
      description: The programs that use the GPU or a part of it.
      type: list
      elements: dict
    cordoned:
      description: Whether the GPU is cordoned, so that nobody is given it or its slices.
      type: bool
    cordon:
      description: The cordon with its reason and the command that ends it; empty if there is none.
      type: str
    readings:
      description:
        - State of the GPU. Readings that the GPU does not support, in its present mode, are missing.
        - Temperatures are in degrees Celsius, power in mW, utilization in percent, clocks in MHz. Pairs are
          current and pending (V(ecc_mode)) or current and largest value (V(pcie_width), V(pcie_generation)).
      type: dict
      sample: {temperature: 34, power_mw: 61000, persistence: true, ecc_mode: [true, true]}
    reading_failures:
      description: Names of NVML's errors for readings that the GPU supports and that failed.
      type: dict
      sample: {}
unreadable:
  description:
    - The GPUs of the machine that the driver lists and that cannot be read, such as one that is lost.
    - There is a warning for each. The module fails when no GPU can be read.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: Index of the GPU. Of several GPUs that the driver does not open, each may have another's.
      type: int
    uuid:
      description: UUID of the GPU, empty if it is unknown.
      type: str
    pci_address:
      description: PCI address with domain, empty if it is unknown.
      type: str
    reason:
      description: NVML's answer, as a sentence.
      type: str
      sample: "NVML was asked for GPU 1 and answered: GPU is lost."
driver_running:
  description:
    - False when the module failed because the driver is installed and does not run, or does not run in the
      version that is installed.
  returned: failure
  type: bool
slices:
  description: The partitions that a program can use, one for each compute instance.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID by which a program selects the partition.
      type: str
    profile:
      description: Name of the MIG profile.
      type: str
    gpu:
      description: UUID of the GPU.
      type: str
    cordoned:
      description: Whether the slice or its GPU is cordoned.
      type: bool
"""

from dataclasses import asdict
from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml import gpu as nvml_gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import (
    inspection,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import (
    kernel_module as nvml_kernel_module,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import OPTION, Guarded
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python


def main() -> None:
    """Run the module."""
    use_gpu_python()
    module = AnsibleModule(
        argument_spec={
            "gpus": {"type": "list", "elements": "str", "default": []},
            "facts": {"type": "bool", "default": False},
            **OPTION,
        },
        supports_check_mode=True,
    )
    try:
        guarded = Guarded(module.params["call_timeout"])
        found = guarded.ask(partial(inspection.inspect, module.params["gpus"]))
        cordons = folder.read()
    except nvml_gpu.GpuError as error:
        module.fail_json(msg=str(error), driver_running=not isinstance(error, nvml_gpu.DriverNotRunning))
    kernel_module = nvml_kernel_module.loaded()
    answer = {
        "driver": {
            **asdict(found.driver),
            "kernel_module_version": kernel_module.version,
            "kernel_module_kind": kernel_module.kind,
        },
        "gpus": [
            {
                **asdict(gpu),
                "cordoned": gpu.uuid in cordons,
                "cordon": str(cordons.get(gpu.uuid, "")),
                **dict(zip(("readings", "reading_failures"), found.readings[gpu.uuid])),
            }
            for gpu in found.gpus
        ],
        "unreadable": nvml_gpu.entries(found.survey.unreadable, module.warn),
        "slices": [
            {**one, "cordoned": one["uuid"] in cordons or one["gpu"] in cordons}
            for one in nvml_gpu.slices(found.gpus)
        ],
    }
    facts = {"ansible_facts": {"gpufarm_gpus": answer}} if module.params["facts"] else {}
    module.exit_json(changed=False, **answer, **facts)


if __name__ == "__main__":
    main()
