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
  - Gives GPUs the partitions that a flavor or a layout names. A partition is a GPU instance (memory and
    compute slices) with one compute instance of full width, or with several that share its memory.
  - Plans the change of all selected GPUs before touching any. A partition that programs use is never
    destroyed, nor one that somebody holds (see O(keep_held)), no more are destroyed than needed, and the new
    ones are placed so that the largest profiles still fit beside them. Impossible requests are refused with
    the reason and with requests that would fit.
  - A GPU that is cordoned, by an administrator or by C(gpufarm-health), is not changed, nor is a slice that
    is cordoned.
  - When a call to the driver hangs during a change, RV(ignore:msg) says whether partitions may be changed in
    part. The next run leads from there to the same goal.
  - When something fails midway on one GPU, the former partitions of all of them are put back. A run that is
    killed is repaired by the next one.
  - Which profiles a GPU offers and where they may lie is read from the GPU.
  - MIG mode is switched on when partitions need it. Where that takes effect only after a reset, the GPU is
    reset with C(nvidia-smi --gpu-reset) if the command is there; if the mode is not in force then,
    RV(reboot_required) says so, and another run after the reboot makes the partitions.
  - Two runs at once wait for one another, for a minute at most.
  - Partitions do not outlive a reboot; the role P(gpufarm.cluster.mig#role) makes them again at boot.
extends_documentation_fragment:
  - gpufarm.cluster.nvml
  - gpufarm.cluster.nvml.call_timeout
attributes:
  diff_mode:
    support: full
    description: Shows MIG mode, partitions and equivalent profiles before and after.
options:
  flavor:
    description:
      - V(None) leaves what is there.
      - V(disabled) destroys the partitions and switches MIG mode off.
      - Counts and profiles, such as V(7x 1g.10gb) or V(1x 3g.40gb, 2x 2g.20gb), are what each selected GPU
        shall hold, no more and no less. V(MIG GPUs) may follow, as in V(7x 1g.10gb MIG GPUs).
      - Profiles with other media engines or with graphics are written as the driver names them, such as
        V(1g.10gb+me), V(1g.24gb+me.all), V(1g.24gb-me) or V(1g.24gb+gfx).
      - Compute instances that share the memory of a GPU instance are V(3x 1c.3g.40gb). They share as few GPU
        instances as hold them when each, the widest first, goes into the first one with room.
    type: str
  layout:
    description:
      - The GPU instances that each selected GPU shall hold, no more and no less. An empty list is MIG mode on
        and no partitions.
      - RV(layout[].partitions) can be given here to have partitions in the same places.
    type: list
    elements: dict
    suboptions:
      profile:
        description: Name of the profile of the GPU instance, such as V(3g.40gb).
        type: str
        required: true
      count:
        description: How many of them.
        type: int
        default: 1
      start:
        description:
          - First memory unit of the instance, as C(nvidia-smi mig -lgipp) lists them. If given,
            O(layout[].count) is 1.
          - If not given, the place is chosen.
        type: int
      compute_instances:
        description:
          - Compute instances of each instance. Names such as V(1c.3g.40gb) or V(1c), each after a
            count such as V(2x) if there are several.
          - If not given, one compute instance of full width. With an empty list none, so no program can use
            it.
        type: list
        elements: str
  gpus:
    description:
      - Which GPUs to partition. Each item is V(all), V(capable), an index, a UUID, a PCI address, a serial
        number or a model name. An item that names no GPU is an error.
      - V(capable) means all GPUs that can be partitioned. RV(incapable) names the others, which stay as they
        are.
      - A GPU that cannot be read, such as one that is lost, is in nobody's way unless an item names it, as
        V(all) and V(capable) do. Then the module fails before it changes any GPU.
    type: list
    elements: str
    default: [all]
  equivalents:
    description:
      - Whether a profile of a GPU with another amount of memory, or a name without memory such as V(1g),
        means the profile of the GPU at hand with the same compute slices, the same fraction of the memory and
        the same attributes. On a GPU of 141 GB V(7x 1g.10gb) is then 7x 1g.18gb.
      - The fractions of all names have to belong to one amount of memory, and what is meant has to fit; more
        than one meaning is refused. A name without memory means the profile with the least.
      - Names that the GPU offers are taken as they are when they fit. RV(mapped) and the diff show the mapped
        names.
    type: bool
    default: false
  stop_services:
    description:
      - Units that may hold a GPU, such as V(nvidia-dcgm.service) or V(nvidia-persistenced.service). Those
        that run are stopped when MIG mode cannot be switched because a GPU is in use, and started again at
        the end, also when the change fails. They are not touched otherwise.
    type: list
    elements: str
    default: []
  keep_held:
    description:
      - Whether a partition that somebody holds is kept like one that a program uses, also while none does, as
        a notebook without a running kernel. Services that hand out partitions tell who holds them, in files
        of C(/run/gpufarm/holders.d).
      - With V(false) only programs count. The holders lose their partitions.
    type: bool
    default: true
seealso:
  - module: gpufarm.cluster.gpu_info
"""

EXAMPLES = r"""
- name: Divide all GPUs into seven
  gpufarm.cluster.mig_partition:
    flavor: 7x 1g.10gb

- name: Divide the GPU in one slot of the machine
  gpufarm.cluster.mig_partition:
    flavor: 1x 3g.40gb, 2x 2g.20gb
    gpus: ["0000:07:00.0"]

- name: Divide GPUs with different amounts of memory, stopping the monitoring if it is in the way
  gpufarm.cluster.mig_partition:
    flavor: 7x 1g
    equivalents: true
    stop_services: [nvidia-dcgm.service]
  register: partitions

- name: One large partition at the low end, and one whose memory three users share
  gpufarm.cluster.mig_partition:
    layout:
      - profile: 3g.40gb
        start: 0
      - profile: 3g.40gb
        compute_instances: [3x 1c]
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
      description: Name of the MIG profile, such as V(3g.40gb), or V(1c.3g.40gb) for a part of a GPU instance.
      type: str
    gpu:
      description: UUID of the GPU.
      type: str
machine:
  description:
    - UUIDs of all GPUs of the machine, the selected ones and others; an empty one for a GPU that cannot be
      read and whose UUID is unknown.
  returned: success
  type: list
  elements: str
layout:
  description:
    - Where the partitions of the selected GPUs lie after the change; where a reboot is required, after the
      next run that follows it.
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
      description: The GPU instances in the order of their places, in the form of O(layout).
      type: list
      elements: dict
      contains:
        profile:
          description: Name of the profile.
          type: str
        start:
          description: First memory unit.
          type: int
        compute_instances:
          description: Names of the compute instances, the widest first.
          type: list
          elements: str
incapable:
  description: UUIDs of the GPUs of the machine that cannot be partitioned and were not selected.
  returned: success
  type: list
  elements: str
mapped:
  description: The profiles that were put in place of those that were asked for.
  returned: success
  type: list
  elements: dict
  contains:
    gpu:
      description: UUID of the GPU.
      type: str
    asked:
      description: Name that was asked for.
      type: str
      sample: 1g.10gb
    given:
      description: Name of the equivalent profile.
      type: str
      sample: 1g.18gb
reboot_required:
  description:
    - Whether MIG mode is set on a GPU and takes effect only after a reboot; the warnings say on which.
  returned: success
  type: bool
"""

import contextlib
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon import cordon
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    Flavor,
    FlavorError,
    parse_flavor,
    parse_layout,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply, holders, lock
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.nodes import missing_nodes
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.services import Services
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import (
    Plan,
    layout_entries,
    plan_flavor,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml import gpu as nvml_gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import (
    OPTION,
    Calls,
    Guarded,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python

FOLDER = lock.FOLDER
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
    "stop_services": {"type": "list", "elements": "str", "default": []},
    "keep_held": {"type": "bool", "default": True},
    **OPTION,
}


def diff(plans: list[Plan], nodes: tuple[Any, ...], pending: set[str]) -> dict[str, str]:
    """Return the state of the GPUs before and after the plans, for people.

    Args:
        nodes: capability files whose device nodes are missing before.
        pending: UUIDs of the GPUs whose mode takes effect only later.
    """
    before, after = [], []
    for plan in plans:
        gpu = plan.gpu
        before += [f"{gpu}: MIG mode {'on' if gpu.mig_enabled else 'off'}"]
        before += [f"  {slot}" for slot in Plan(gpu).layout]
        mode = "on" if plan.mig_enabled else "off"
        after += [f"{gpu}: MIG mode {mode}{' after a reboot' if gpu.uuid in pending else ''}"]
        after += [f"  {slot}" for slot in plan.layout if gpu.uuid not in pending]
        after += [f"  {given} stands for {asked}" for asked, given in plan.mapped]
    before += [f"no device node for {node}" for node in nodes]
    return {"before": "\n".join(before) + "\n", "after": "\n".join(after) + "\n"}


def run(module: AnsibleModule, request: Flavor, services: Services) -> dict[str, Any]:
    """Plan, carry it out unless in check mode, and return the result.

    Raises:
        GpuError: when the request is impossible, or a change failed.
    """
    left_stopped = bool(services.stopped)
    guarded = Guarded(module.params["call_timeout"])
    survey = guarded.ask(session.survey)
    machine = survey.gpus
    if module.params["keep_held"]:
        machine = holders.mark(machine, FOLDER / "holders.d")
    cordons = folder.read()
    machine = cordon.mark(machine, cordons)
    gpus = nvml_gpu.select(machine, module.params["gpus"], survey.unreadable)
    selected = {gpu.uuid for gpu in gpus}
    for failed in survey.unreadable:
        module.warn(str(failed))
    freed = services.processes(gpus)
    plans = [plan_flavor(gpu, request, module.params["equivalents"], freed) for gpu in gpus]
    for plan in plans:
        if plan.changed:
            cordon.check_change(plan.gpu, cordons)
    nodes = missing_nodes(gpus)
    changed = any(plan.changed for plan in plans)
    pending = {plan.gpu.uuid for plan in plans if plan.mode is not None and plan.mode == plan.gpu.mig_pending}
    if (changed or nodes) and not module.check_mode:

        def work(calls: Calls) -> apply.Outcome:
            with session.session(calls) as nvml:
                return apply.apply(nvml, plans, services)

        outcome = guarded.change(work, apply.partly(gpus))
        changed = outcome.changed
        pending = {one.gpu.uuid for one in outcome.pending}
        for one in outcome.pending:
            module.warn(str(one))
        gpus = tuple(gpu for gpu in outcome.gpus if gpu.uuid in selected)
    result = {
        "changed": changed or bool(nodes) or left_stopped,
        "slices": nvml_gpu.slices(gpus),
        "machine": [gpu.uuid for gpu in (*machine, *survey.unreadable)],
        "layout": [
            {"gpu": plan.gpu.uuid, "mig_enabled": plan.mig_enabled, "partitions": layout_entries(plan)}
            for plan in plans
        ],
        "incapable": [gpu.uuid for gpu in machine if not gpu.mig_capable and gpu.uuid not in selected],
        "mapped": [
            {"gpu": plan.gpu.uuid, "asked": asked, "given": given}
            for plan in plans
            for asked, given in plan.mapped
        ],
        "reboot_required": bool(pending),
    }
    if result["changed"]:
        result["diff"] = diff(plans, nodes, pending)
    return result


def main() -> None:
    """Run the module."""
    use_gpu_python()
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        mutually_exclusive=[("flavor", "layout")],
        required_one_of=[("flavor", "layout")],
        supports_check_mode=True,
    )
    parameters = module.params
    services = Services(parameters["stop_services"], FOLDER)
    problems = []
    result: dict[str, Any] = {}
    try:
        if parameters["layout"] is None:
            request = parse_flavor(parameters["flavor"])
        else:
            request = parse_layout(parameters["layout"])
        with contextlib.nullcontext() if module.check_mode else lock.locked(FOLDER):
            try:
                result = run(module, request, services)
            except nvml_gpu.GpuError as error:
                problems.append(str(error))
            finally:
                if not module.check_mode:
                    problems.extend(services.bring_back())
    except (FlavorError, nvml_gpu.GpuError) as error:
        problems.append(str(error))
    if problems:
        module.fail_json(msg=" ".join(problems))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
