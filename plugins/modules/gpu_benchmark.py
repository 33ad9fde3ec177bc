#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: measure the GPUs of a machine, and keep what was measured."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_benchmark
short_description: Measure the GPUs of a machine and keep the results
version_added: 0.1.0
description:
  - Measures the cores and the memory of each GPU, its link to the machine's memory, and the links between
    GPUs, with the driver's own library of CUDA. Results and copies are checked.
  - Where a site has nccl-tests, all GPUs together are measured with them.
  - GPUs that programs use are refused, and the others are measured all the same. GPUs in MIG mode are left
    out.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
  - gpufarm.cluster.benchmark
requirements:
  - an NVIDIA driver that is loaded, with its libraries C(libnvidia-ml.so.1) and C(libcuda.so.1)
  - the Python package nvidia-ml-py, as M(gpufarm.cluster.gpu_info) needs it
options:
  nccl_tests:
    description:
      - Absolute path of the folder that has the program C(all_reduce_perf) of NVIDIA's nccl-tests, which the
        account C(nobody) runs. Leave it out to measure no more than two GPUs at a time.
    type: path
seealso:
  - module: gpufarm.cluster.benchmark
  - module: gpufarm.cluster.gpu_health
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Measure the GPUs
  gpufarm.cluster.gpu_benchmark:
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
  sample: {gpu.0.fp32_tflops: 65.1, gpu.0.memory_gb_s: 4157.2}
worse:
  description: Values that are more than ten percent worse than the baseline, as sentences.
  returned: success
  type: list
  elements: str
  sample: [gpu.0.memory_gb_s is 2100, 49% worse than 4157 at first]
links:
  description: Machines to which links were measured, by the names of the values.
  returned: success
  type: dict
  sample: {mpi.10.1.0.0/16.gb_s: gpu02}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io.gpus import parts
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io.measure import OPTIONS, measure
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python


def main() -> None:
    """Run the module."""
    use_gpu_python()
    module = AnsibleModule(
        argument_spec={**OPTIONS, "nccl_tests": {"type": "path"}}, supports_check_mode=True
    )
    try:
        found = parts(module.params["nccl_tests"] or "")
    except GpuError as error:
        module.fail_json(msg=str(error))
    measure(module, found)


if __name__ == "__main__":
    main()
