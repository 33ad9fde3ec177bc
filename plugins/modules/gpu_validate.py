#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: compare the GPUs of a machine with what is declared about them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_validate
short_description: Check that the GPUs of a machine are as declared
version_added: 0.1.0
description:
  - Compares the GPUs and the driver of a machine with what is declared about them, and fails with all
    violations at once. Properties that are not declared are not checked.
  - Whether the GPUs are well is another question, which M(gpufarm.cluster.gpu_health) answers.
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
      - Which GPUs the declaration is about. Each item is V(all), V(capable), an index, a UUID, a PCI
        address, a serial number or a model name; if empty, all GPUs. A GPU among them that cannot be read is
        an error.
    type: list
    elements: str
    default: []
  count:
    description: Number of GPUs.
    type: int
  driver_version:
    description: Oldest version of the driver that will do.
    type: str
  cuda_version:
    description: Oldest version of CUDA that the driver has to run.
    type: str
  kernel_module:
    description: Kind of the loaded kernel module.
    type: str
    choices: [open, proprietary]
  model:
    description: Part of the GPUs' name, in any case, such as V(A100).
    type: str
  memory_mib:
    description: Least memory of each GPU in MiB.
    type: int
  vbios:
    description: Version of the video BIOS.
    type: str
  mig_enabled:
    description: Whether MIG mode is on.
    type: bool
  mig_flavor:
    description:
      - Exact partitions of each GPU, in the grammar of M(gpufarm.cluster.mig_partition), such as
        V(7x 1g.10gb); V(disabled) for MIG mode off.
    type: str
  ecc:
    description: Whether error correction of the memory (ECC) is on.
    type: bool
  persistence:
    description: Whether persistence mode is on.
    type: bool
  compute_mode:
    description: Compute mode.
    type: str
    choices: [default, exclusive_thread, prohibited, exclusive_process]
  power_limit_watts:
    description: Power limit that is in force, in watts.
    type: int
  pcie_width:
    description: Fewest PCIe lanes in use.
    type: int
  nvlinks:
    description: Fewest active NVLinks of each GPU.
    type: int
  idle:
    description: Whether no program uses the GPUs.
    type: bool
  cordoned:
    description: Whether a GPU or one of its slices is cordoned, see C(gpufarm-health cordons).
    type: bool
  lenient:
    description: Names of the options above whose violation is a warning, with which the module does not fail.
    type: list
    elements: str
    default: []
seealso:
  - module: gpufarm.cluster.gpu_health
  - module: gpufarm.cluster.gpu_info
"""

EXAMPLES = r"""
- name: Check that a machine is what was ordered, and set up as agreed
  gpufarm.cluster.gpu_validate:
    count: 8
    model: H100
    driver_version: "550.54"
    ecc: true
    persistence: true
    pcie_width: 16
    nvlinks: 18
    lenient: [persistence]

- name: Check that nobody computes before a maintenance
  gpufarm.cluster.gpu_validate:
    idle: true
"""

RETURN = r"""
checks:
  description: Comparisons, in the order of the options, also when the module fails.
  returned: always, unless the GPUs cannot be read
  type: list
  elements: dict
  contains:
    name:
      description: Name of the option.
      type: str
    ok:
      description: Whether it is as declared.
      type: bool
    severity:
      description: Severity of a violation, V(error) or V(warning).
      type: str
    detail:
      description: Actual and declared value.
      type: str
      sample: "GPU 0 (NVIDIA H100 NVL, 0000:17:00.0): PCIe lanes 8, at least 16 declared"
    gpu:
      description: UUID of the GPU, empty if it is about the machine.
      type: str
"""

from dataclasses import asdict
from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils import _gpu_validate
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.cordon import of_gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import FlavorError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml import gpu as nvml_gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import (
    inspection,
    kernel_module,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import OPTION, Guarded
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python

# Readings that a check rests on; NVML's failure to tell one is an error, not a violation.
_NEEDED = {
    "vbios": "vbios",
    "ecc": "ecc_mode",
    "persistence": "persistence",
    "compute_mode": "compute_mode",
    "power_limit_watts": "power_limit_mw",
    "pcie_width": "pcie_width",
    "nvlinks": "nvlinks",
}

OPTIONS = {
    "count": {"type": "int"},
    "driver_version": {"type": "str"},
    "cuda_version": {"type": "str"},
    "kernel_module": {"type": "str", "choices": ["open", "proprietary"]},
    "model": {"type": "str"},
    "memory_mib": {"type": "int"},
    "vbios": {"type": "str"},
    "mig_enabled": {"type": "bool"},
    "mig_flavor": {"type": "str"},
    "ecc": {"type": "bool"},
    "persistence": {"type": "bool"},
    "compute_mode": {
        "type": "str",
        "choices": ["default", "exclusive_thread", "prohibited", "exclusive_process"],
    },
    "power_limit_watts": {"type": "int"},
    "pcie_width": {"type": "int"},
    "nvlinks": {"type": "int"},
    "idle": {"type": "bool"},
    "cordoned": {"type": "bool"},
}


def read(selectors: list[str], call_timeout: float, expected: _gpu_validate.Expected) -> _gpu_validate.Found:
    """Read what is compared.

    Raises:
        GpuError: when NVML does not tell something that is declared.
    """
    found = Guarded(call_timeout).ask(partial(inspection.inspect, selectors))
    gpus, answers = found.gpus, found.readings
    if found.survey.unreadable and not selectors:
        nvml_gpu.select(gpus, ["all"], found.survey.unreadable)
    for gpu in gpus:
        for name, reading in _NEEDED.items():
            failure = answers[gpu.uuid][1].get(reading)
            if getattr(expected, name) is not None and failure is not None:
                raise nvml_gpu.GpuError(f"NVML does not tell '{name}' of {gpu}: {failure}.")
    readings = {uuid: values for uuid, (values, _failures) in answers.items()}
    cordons = {} if expected.cordoned is None else folder.read()
    for gpu in gpus:
        readings[gpu.uuid]["cordons"] = [str(one) for one in of_gpu(gpu, cordons)]
    kind = kernel_module.loaded().kind
    return _gpu_validate.Found(found.driver.version, found.driver.cuda_version, kind, gpus, readings)


def main() -> None:
    """Run the module."""
    use_gpu_python()
    lists = {name: {"type": "list", "elements": "str", "default": []} for name in ("gpus", "lenient")}
    module = AnsibleModule(argument_spec={**OPTIONS, **lists, **OPTION}, supports_check_mode=True)
    lenient = module.params["lenient"]
    unknown = sorted(set(lenient) - set(_gpu_validate.CHECKS))
    if unknown:
        module.fail_json(
            msg=f"'lenient' names '{unknown[0]}', which is no check: choose among"
            f" {', '.join(_gpu_validate.CHECKS)}."
        )
    expected = _gpu_validate.Expected(**{name: module.params[name] for name in OPTIONS})
    try:
        found = read(module.params["gpus"], module.params["call_timeout"], expected)
        checks = _gpu_validate.compare(expected, found, lenient)
    except (nvml_gpu.GpuError, FlavorError) as error:
        module.fail_json(msg=str(error))
    for words in _gpu_validate.violations(checks, "warning"):
        module.warn(words)
    result = [asdict(check) for check in checks]
    errors = _gpu_validate.violations(checks, "error")
    if errors:
        module.fail_json(
            msg=f"The GPUs are not as declared: {'; '.join(errors)}. Correct the machine or the declaration.",
            checks=result,
        )
    module.exit_json(changed=False, checks=result)


if __name__ == "__main__":
    main()
