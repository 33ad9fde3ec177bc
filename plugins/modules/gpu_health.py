#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: whether the GPUs of a machine are well."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_health
short_description: Check the health of NVIDIA GPUs
version_added: 0.1.0
description:
  - Makes the checks that the command C(gpufarm-health) of the role P(gpufarm.cluster.gpu_health#role) makes,
    with the same rules. It reads what NVML, the kernel's log and, where it is installed, DCGM say.
  - A driver that hangs does not hang the module. It reads in a process of its own, which is ended when one
    call takes longer than O(call_timeout), and the hang is a finding.
  - Checks that a GPU does not support, or not in MIG mode, are skipped and never fail.
  - Growth of counters is compared with what the role's timer has recorded since the boot; without it these
    checks are skipped. The module itself records nothing.
extends_documentation_fragment:
  - gpufarm.cluster.nvml
attributes:
  diff_mode:
    support: none
    description: The module reads only.
options:
  thresholds:
    description:
      - Largest values that are fine, by name, where they differ from the defaults.
      - Names, defaults and sources are V(temperature_warning) (83 degrees Celsius) and
        V(temperature_critical) (90), V(ecc_corrected_per_minute) (100), V(retired_pages_warning) (50) and
        V(retired_pages_critical) (63), V(pcie_replays_per_minute_warning) (50) and
        V(pcie_replays_per_minute_critical) (200), all from Azure/cyclecloud-healthagent; V(ecc_corrected)
        (50000000) and V(idle_memory_mib) (15) from facebookresearch/gcm; V(remapped_rows) (7),
        V(nvlink_errors) (0), V(throttled_runs) (2) and V(memory_temperature) (95) from leptonai/gpud;
        V(graphics_error_programs) (3) from NVIDIA's XID catalogue.
    type: dict
    default: {}
  expected_gpus:
    description: Number of GPUs. If V(0), as many as the PCI bus has.
    type: int
    default: 0
  expected_nvlinks:
    description:
      - Number of active NVLinks of each GPU. If V(0), a GPU with some active and some inactive gets a
        warning.
    type: int
    default: 0
  disabled_checks:
    description: Names of checks that are not made, as the results name them.
    type: list
    elements: str
    default: []
  xid_status:
    description: Status (V(ok), V(warning) or V(critical)) of errors of the driver, by XID number.
    type: dict
    default: {}
  call_timeout:
    description: Seconds that one call to the driver may take.
    type: float
    default: 30
  idle:
    description: Whether no program may use the GPUs.
    type: bool
    default: false
  dcgm_diag_level:
    description: Level of the active diagnostic of DCGM, which disturbs programs; V(0) for none.
    type: int
    choices: [0, 1, 2, 3, 4]
    default: 0
  fail_from:
    description: The mildest status with which the module fails.
    type: str
    choices: [warning, unknown, critical, never]
    default: critical
seealso:
  - module: gpufarm.cluster.gpu_info
  - module: gpufarm.cluster.gpu_validate
"""

EXAMPLES = r"""
- name: Stop here if a GPU is broken
  gpufarm.cluster.gpu_health:
    expected_gpus: 8
    thresholds:
      temperature_warning: 75

- name: Look, and decide later
  gpufarm.cluster.gpu_health:
    fail_from: never
  register: health
"""

RETURN = r"""
status:
  description: Status of the worst check, V(ok), V(warning), V(unknown) or V(critical).
  returned: always, unless an option is not understood
  type: str
summary:
  description: Status and its first reason in one line.
  returned: always, unless an option is not understood
  type: str
  sample: "OK: 24 checks made"
findings:
  description: The outcome of every check.
  returned: always, unless an option is not understood
  type: list
  elements: dict
  contains:
    check:
      description: Name of the check.
      type: str
      sample: temperature
    status:
      description: One of V(ok), V(warning), V(unknown), V(critical), V(skipped).
      type: str
    detail:
      description: The finding, as a sentence.
      type: str
    action:
      description: The remedy; empty if there is none.
      type: str
    level:
      description:
        - "The party that has to act: V(information) (nobody), V(program) (the user), V(administrator),
          V(reset) (the administrator resets the GPU), V(machine) (the administrator reboots the machine),
          V(vendor); empty if nothing is wrong."
      type: str
    source:
      description: Document or project that the rule is from.
      type: str
    gpu:
      description: UUID of the GPU, empty if it is about the machine.
      type: str
    value:
      description: Measured value.
      type: raw
    threshold:
      description: Threshold that it was compared with.
      type: raw
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import (
    finding,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import (
    machine as health_machine,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import (
    report as health_report,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import read, store
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python

SETTINGS = {
    "thresholds": {"type": "dict", "default": {}},
    "expected_gpus": {"type": "int", "default": 0},
    "expected_nvlinks": {"type": "int", "default": 0},
    "disabled_checks": {"type": "list", "elements": "str", "default": []},
    "xid_status": {"type": "dict", "default": {}},
    "call_timeout": {"type": "float", "default": 30},
}


def main() -> None:
    """Run the module."""
    use_gpu_python()
    module = AnsibleModule(
        argument_spec={
            **SETTINGS,
            "idle": {"type": "bool", "default": False},
            "dcgm_diag_level": {"type": "int", "choices": [0, 1, 2, 3, 4], "default": 0},
            "fail_from": {
                "type": "str",
                "choices": ["warning", "unknown", "critical", "never"],
                "default": "critical",
            },
        },
        supports_check_mode=True,
    )
    given = {name: module.params[name] for name in SETTINGS}
    try:
        settings = finding.parse_settings(given, health_machine.CHECKS)
        baseline = store.read()
    except finding.HealthError as error:
        module.fail_json(msg=str(error))
    try:
        machine = read.read_machine(settings, baseline, module.params["dcgm_diag_level"])
    except GpuError as error:
        module.fail_json(msg=str(error))
    findings = health_machine.evaluate(machine, settings, baseline, module.params["idle"])
    report = health_report.as_data(findings)
    limit = module.params["fail_from"]
    order = finding.ORDER
    if limit != "never" and order.index(finding.worst(findings)) >= order.index(limit):
        module.fail_json(msg=f"The GPUs are not well: {health_report.text(findings).strip()}", **report)
    module.exit_json(changed=False, **report)


if __name__ == "__main__":
    main()
