#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: partition GPUs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mig_partition
short_description: Partition NVIDIA GPUs with MIG
version_added: 0.1.0
description:
  - Gives GPUs the partitions that a flavor names. Each is a GPU instance with one compute instance of full
    width.
  - Plans the change of all selected GPUs before touching any. A partition that programs use is never
    destroyed, and no more are destroyed than needed; what cannot be had is refused with the reason.
  - Which profiles a GPU offers and where they may lie is read from the GPU.
  - MIG mode is switched on when a flavor needs it. If that takes effect only after a reset or a reboot, the
    module fails and says so.
  - Partitions do not outlive a reboot; the role P(gpufarm.cluster.mig#role) makes them again at boot.
extends_documentation_fragment:
  - gpufarm.cluster.nvml
attributes:
  diff_mode:
    support: full
    description: Shows MIG mode and partitions before and after.
options:
  flavor:
    description:
      - V(None) leaves what is there.
      - V(disabled) destroys the partitions and switches MIG mode off.
      - Counts and profiles, such as V(7x 1g.10gb) or V(1x 3g.40gb, 2x 2g.20gb), are what each selected GPU
        shall hold, no more and no less. V(MIG GPUs) may follow, as in V(7x 1g.10gb MIG GPUs).
    type: str
    required: true
  gpus:
    description:
      - Which GPUs to partition. Each item is V(all), an index, a UUID, a PCI address, a serial number or a
        model name. An item that names no GPU is an error.
    type: list
    elements: str
    default: [all]
seealso:
  - module: gpufarm.cluster.gpu_info
"""

EXAMPLES = r"""
- name: Divide all GPUs into seven
  gpufarm.cluster.mig_partition:
    flavor: 7x 1g.10gb
  vars:
    ansible_python_interpreter: /opt/gpufarm/gpu/bin/python

- name: Divide the GPU in one slot of the machine
  gpufarm.cluster.mig_partition:
    flavor: 1x 3g.40gb, 2x 2g.20gb
    gpus: ["0000:07:00.0"]
  vars:
    ansible_python_interpreter: /opt/gpufarm/gpu/bin/python
"""

RETURN = r"""
slices:
  description: The partitions of the selected GPUs as they are; in check mode, before the change.
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
machine:
  description: UUIDs of all GPUs of the machine, the selected ones and others.
  returned: success
  type: list
  elements: str
layout:
  description: Where the partitions of the selected GPUs lie after the change.
  returned: success
  type: list
  elements: dict
  contains:
    gpu:
      description: UUID of the GPU.
      type: str
    mig_enabled:
      description: MIG mode.
      type: bool
    partitions:
      description: The partitions, each with C(profile) and C(start), the first of its memory units.
      type: list
      elements: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufarm.cluster.plugins.module_utils import _gpu, _mig_apply, _nvml
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig_flavor import FlavorError, parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig_plan import Plan, plan_flavor


def layout(plans: list[Plan]) -> list[dict[str, Any]]:
    """Return where partitions lie after the plans."""
    return [
        {
            "gpu": plan.gpu.uuid,
            "mig_enabled": plan.mig_enabled,
            "partitions": [{"profile": name, "start": start} for name, start in plan.layout],
        }
        for plan in plans
    ]


def diff(plans: list[Plan], nodes: tuple[Any, ...]) -> dict[str, str]:
    """Return the state of the GPUs before and after the plans, for people."""
    before, after = [], []
    for plan in plans:
        gpu = plan.gpu
        hollow = {one for one in gpu.instances if not one.whole}
        places = sorted(gpu.instances, key=lambda one: one.placement)
        before += [f"{gpu}: MIG mode {'on' if gpu.mig_enabled else 'off'}"]
        before += [f"  {one}{', not usable as a whole' if one in hollow else ''}" for one in places]
        after += [f"{gpu}: MIG mode {'on' if plan.mig_enabled else 'off'}"]
        after += [f"  {name} at {start}" for name, start in plan.layout]
    before += [f"no device node for {node}" for node in nodes]
    return {"before": "\n".join(before) + "\n", "after": "\n".join(after) + "\n"}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "flavor": {"type": "str", "required": True},
            "gpus": {"type": "list", "elements": "str", "default": ["all"]},
        },
        supports_check_mode=True,
    )
    try:
        flavor = parse_flavor(module.params["flavor"])
        with _nvml.session() as nvml:
            machine = nvml.gpus()
            gpus = _gpu.select(machine, module.params["gpus"])
            plans = [plan_flavor(gpu, flavor) for gpu in gpus]
            nodes = _mig_apply.missing_nodes(gpus)
            changed = any(plan.changed for plan in plans) or bool(nodes)
            if changed and not module.check_mode:
                uuids = {gpu.uuid for gpu in gpus}
                gpus = tuple(gpu for gpu in _mig_apply.apply(nvml, plans) if gpu.uuid in uuids)
    except (FlavorError, _gpu.GpuError) as error:
        module.fail_json(msg=str(error))
    result = {
        "changed": changed,
        "slices": _gpu.slices(gpus),
        "machine": [gpu.uuid for gpu in machine],
        "layout": layout(plans),
    }
    if changed:
        result["diff"] = diff(plans, nodes)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
