#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: check that GPUs can hold partitions, before anything is installed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mig_validate
short_description: Check that GPUs can hold MIG partitions, before anything is installed
version_added: 0.1.0
description:
  - Plans partitions as M(gpufarm.cluster.mig_partition) does, for GPUs that are empty, and fails when they
    cannot hold the partitions. Which programs use a GPU is left to that module.
  - Reads the GPUs through the library of the driver alone, so that it works on a machine on which no role
    has run. Where no driver answers, or it offers no partitions, RV(unchecked) says so.
extends_documentation_fragment:
  - gpufarm.cluster.nvml.call_timeout
  - gpufarm.cluster.attributes.info_module
options:
  flavor:
    description: As in M(gpufarm.cluster.mig_partition).
    type: str
  layout:
    description: As in M(gpufarm.cluster.mig_partition).
    type: list
    elements: dict
    suboptions:
      profile:
        description: Name of the profile of the GPU instance.
        type: str
        required: true
      count:
        description: How many of them.
        type: int
        default: 1
      start:
        description: First memory unit of the instance.
        type: int
      compute_instances:
        description: Compute instances of each instance.
        type: list
        elements: str
  gpus:
    description: As in M(gpufarm.cluster.mig_partition).
    type: list
    elements: str
    default: [all]
  equivalents:
    description: As in M(gpufarm.cluster.mig_partition).
    type: bool
    default: false
seealso:
  - module: gpufarm.cluster.mig_partition
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Check that all GPUs can be divided into seven
  gpufarm.cluster.mig_validate:
    flavor: 7x 1g.10gb
"""

RETURN = r"""
unchecked:
  description: A sentence that says what could not be checked, and why; empty if all was.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    DISABLED,
    Flavor,
    FlavorError,
    parse_flavor,
    parse_layout,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError, select
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import offers
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import OPTION, Guarded

ARGUMENTS: dict[str, Any] = {
    "flavor": {"type": "str"},
    "layout": {
        "type": "list",
        "elements": "dict",
        "options": {
            "profile": {"type": "str", "required": True},
            "count": {"type": "int", "default": 1},
            "start": {"type": "int"},
            "compute_instances": {"type": "list", "elements": "str"},
        },
    },
    "gpus": {"type": "list", "elements": "str", "default": ["all"]},
    "equivalents": {"type": "bool", "default": False},
    **OPTION,
}


def check(wish: Flavor, selectors: list[str], equivalents: bool, call_timeout: float) -> str:
    """Plan partitions for the GPUs of this machine.

    Returns:
        a sentence if that is not possible yet; empty if they fit.

    Raises:
        GpuError: when GPUs cannot hold them, all of it in lines.
    """
    if wish.kind == DISABLED:
        return ""
    try:
        survey = Guarded(call_timeout).ask(offers.empty_gpus)
    except offers.BrokenLibrary as error:
        return f"whether '{wish}' fits on the GPUs could not be checked: {error}"
    if not survey.unreadable and all(gpu.mig_capable and not gpu.profiles for gpu in survey.gpus):
        return f"whether '{wish}' fits on the GPUs is checked after the driver is installed"
    problems = []
    for gpu in select(survey.gpus, selectors, survey.unreadable):
        try:
            plan_flavor(gpu, wish, equivalents)
        except GpuError as error:
            problems.append(str(error))
    if problems:
        raise GpuError("\n".join(problems))
    return ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        mutually_exclusive=[("flavor", "layout")],
        required_one_of=[("flavor", "layout")],
        supports_check_mode=True,
    )
    wanted = module.params
    try:
        wish = parse_flavor(wanted["flavor"]) if wanted["layout"] is None else parse_layout(wanted["layout"])
        unchecked = check(wish, wanted["gpus"], wanted["equivalents"], wanted["call_timeout"])
    except (FlavorError, GpuError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, unchecked=unchecked)


if __name__ == "__main__":
    main()
