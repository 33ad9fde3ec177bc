#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: settings of GPUs, such as power limits and clocks."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_settings
short_description: Set power limits, clocks and modes of NVIDIA GPUs
version_added: 0.1.0
description:
  - Gives GPUs the settings that a list names, and puts settings that it no longer names back to what they
    were before this module changed them first.
  - Plans the change of all GPUs before it touches any, and refuses what a GPU does not offer. A GPU that
    cannot be read does not keep others from their settings; RV(unreadable) has it.
  - C(/etc/gpufarm/settings.json) remembers the settings that were asked for and those before. The driver
    forgets all but the ECC mode when it is unloaded, and at the latest at a reboot. The role
    P(gpufarm.cluster.gpu_settings#role) sets them again at every boot.
  - NVML does not tell whether clocks are locked. So the module locks them again at each run, and reports a
    change only if the file has other clocks.
  - A GPU is never reset, and the machine never rebooted.
extends_documentation_fragment:
  - gpufarm.cluster.nvml
  - gpufarm.cluster.nvml.call_timeout
attributes:
  diff_mode:
    support: full
    description: Shows the settings before and after.
options:
  settings:
    description:
      - Settings of GPUs. If several entries name a setting of one GPU, the last one counts. A setting that no
        entry names is left alone, or put back if an earlier run changed it.
      - If empty, everything is put back.
    type: list
    elements: dict
    required: true
    suboptions:
      gpus:
        description:
          - GPUs of the entry. Each item is V(all), an index, a UUID, a PCI address, a serial number or a
            model name. An item that names no GPU is an error, and so is one other than V(all) that names a
            GPU that cannot be read.
        type: list
        elements: str
        default: [all]
      persistence_mode:
        description:
          - Whether the driver stays loaded on the GPU while no program uses it. Without it, and without
            C(nvidia-persistenced), the driver forgets the other settings when the last program ends.
        type: bool
      power_limit:
        description: Most power that the GPU may draw, in W, or V(default).
        type: str
      gpu_clocks:
        description: Least and most clock of the GPU in MHz, such as V(1200,1410), or V(default).
        type: str
      memory_clocks:
        description: Least and most clock of the memory in MHz, such as V(1593,1593), or V(default).
        type: str
      compute_mode:
        description:
          - How many programs may compute on the GPU at a time. V(default) is any number, V(exclusive_process)
            one, V(prohibited) none. In MIG mode the driver fixes it to V(default).
        type: str
        choices: [default, exclusive_process, prohibited]
      ecc_mode:
        description:
          - Whether the memory corrects errors. A change takes effect at the next reset of the GPU or reboot,
            and RV(pending) says so.
        type: bool
      accounting_mode:
        description: Whether the driver keeps statistics of programs. In MIG mode it does not.
        type: bool
seealso:
  - module: gpufarm.cluster.gpu_info
  - module: gpufarm.cluster.mig_partition
"""

EXAMPLES = r"""
- name: Limit the power of all GPUs, and lock the clocks of one of them
  gpufarm.cluster.gpu_settings:
    settings:
      - persistence_mode: true
        power_limit: "300"
      - gpus: ["0000:07:00.0"]
        gpu_clocks: 1200,1410

- name: Put back what was there before
  gpufarm.cluster.gpu_settings:
    settings: []
"""

RETURN = r"""
gpus:
  description: The GPUs that an entry names, and those whose settings were put back.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the GPU.
      type: str
    settings:
      description: The settings that were asked for, as users write them.
      type: dict
      sample: {power_limit: 300 W, ecc_mode: "on"}
pending:
  description: Settings that take effect at the next reset of the GPU or reboot.
  returned: success
  type: list
  elements: dict
  contains:
    gpu:
      description: UUID of the GPU.
      type: str
    setting:
      description: The setting.
      type: str
      sample: ecc_mode
unreadable:
  description: The GPUs that cannot be read, as in M(gpufarm.cluster.gpu_info), with a warning for each.
  returned: success
  type: list
  elements: dict
"""

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import lock
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    Gpu,
    GpuError,
    Survey,
    select,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import entries as result_entries
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import kernel_module
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import OPTION, Guarded
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.python import use_gpu_python
from ansible_collections.gpufarm.cluster.plugins.module_utils._settings.io import apply, examine, stored
from ansible_collections.gpufarm.cluster.plugins.module_utils._settings.plan import (
    Board,
    Entry,
    Plan,
    diff,
    plan,
    problems,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._settings.request import (
    COMPUTE_MODES,
    SettingsError,
    Values,
    parse,
    words,
)

FILE = stored.FILE
FOLDER = lock.FOLDER
ARGUMENTS: dict[str, Any] = {
    **OPTION,
    "settings": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "gpus": {"type": "list", "elements": "str", "default": ["all"]},
            "persistence_mode": {"type": "bool"},
            "power_limit": {"type": "str"},
            "gpu_clocks": {"type": "str"},
            "memory_clocks": {"type": "str"},
            "compute_mode": {"type": "str", "choices": list(COMPUTE_MODES)},
            "ecc_mode": {"type": "bool"},
            "accounting_mode": {"type": "bool"},
        },
    },
}
NOTHING: dict[str, Any] = {"changed": False, "gpus": [], "pending": [], "unreadable": []}


def chosen(survey: Survey, selectors: list[str]) -> tuple[Gpu, ...]:
    """Return the GPUs that selectors name; `all` are those that can be read.

    Raises:
        GpuError: when a selector names no GPU, or another one than `all` a GPU that cannot be read.
    """
    named = [one for one in selectors if one.strip().lower() != "all"]
    found = select(survey.gpus, ["all"]) if len(named) < len(selectors) else ()
    return (*found, *select(survey.gpus, named, survey.unreadable))


def run(module: AnsibleModule, requests: list[tuple[list[str], Values]]) -> dict[str, Any]:
    """Plan, carry it out unless in check mode, and return the result.

    Raises:
        GpuError: when a request is impossible, or a GPU refused a setting.
    """
    entries = stored.load(FILE)
    if not requests and not entries:
        return NOTHING
    guarded = Guarded(module.params["call_timeout"])
    try:
        found = guarded.ask(partial(examine.examine, requests, entries.keys(), chosen))
    except GpuError:
        if requests or kernel_module.loaded().version:
            raise
        return forget(module, entries)
    wanted, boards = found.wanted, found.boards
    unreadable = sorted((*found.survey.unreadable, *found.failed), key=lambda one: one.index)
    if found.failed and not boards:
        raise GpuError(" ".join(map(str, unreadable)))
    refused = [text for board in boards for text in problems(board, wanted.get(board.uuid, {}))]
    if refused:
        raise GpuError(" ".join(refused))
    plans = [plan(board, wanted.get(board.uuid, {}), entries.get(board.uuid, Entry())) for board in boards]
    readable = {board.uuid for board in boards}
    kept = {uuid: entry for uuid, entry in entries.items() if unreadable and uuid not in readable}
    if not module.check_mode:
        boards = carry_out(guarded, plans, found.gpus, kept)
    for one in plans:
        tell(module, one)
    result = {
        "changed": any(one.changed for one in plans),
        "gpus": [{"uuid": one.board.uuid, "settings": described(one)} for one in plans],
        "pending": [{"gpu": board.uuid, "setting": name} for board in boards for name in board.pending],
        "unreadable": result_entries(unreadable, module.warn),
    }
    return result | ({"diff": diff(plans)} if result["changed"] else {})


def forget(module: AnsibleModule, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Forget all settings on a machine without a driver, which has forgotten all but the ECC mode."""
    kept = [uuid for uuid, entry in entries.items() if "ecc_mode" in entry.before]
    for uuid in kept:
        module.warn(
            f"The driver is not loaded, so the ECC mode of {uuid} is not put back: set it with"
            " 'nvidia-smi --ecc-config' if the GPU is used again."
        )
    if not module.check_mode:
        stored.save(FILE, {})
    return {**NOTHING, "changed": True}


def carry_out(
    guarded: Guarded, plans: list[Plan], gpus: Mapping[str, Gpu], kept: Mapping[str, Entry]
) -> list[Board]:
    """Change the GPUs, and remember what they were before the first of them changes.

    Returns:
        the GPUs as they are then.

    Raises:
        GpuError: when a GPU refused a setting; the others have theirs.
    """
    remembered = dict(kept)
    remembered |= {one.board.uuid: one.entry for one in plans if one.entry != Entry()}
    if remembered != stored.load(FILE):
        stored.save(FILE, remembered)
    boards, refused = [], []
    for one in plans:
        gpu = gpus[one.board.uuid]
        try:
            board, texts = guarded.change(partial(apply.apply, one, gpu), apply.partly(gpu))
        except GpuError as error:
            board, texts = one.board, [str(error)]
        boards.append(board)
        refused += texts
        if not texts:
            remembered[board.uuid] = one.settled
    remembered = {uuid: entry for uuid, entry in remembered.items() if entry != Entry()}
    if remembered != stored.load(FILE):
        stored.save(FILE, remembered)
    if refused:
        raise GpuError(" ".join(refused))
    return boards


def described(one: Plan) -> dict[str, str]:
    """Return the settings that were asked for, as users write them."""
    return {name: words(name, value) for name, value in one.settled.wanted.items()}


def tell(module: AnsibleModule, one: Plan) -> None:
    """Warn of settings that cannot be put back, and of those that the driver forgets soon."""
    for name in one.lost:
        module.warn(
            f"{one.board.name} cannot get its former {name} back, as it does not offer that now: set it by"
            " hand."
        )
    goal = one.board.values | {step.name: step.after for step in one.steps}
    volatile = [name for name in one.settled.wanted if name not in ("persistence_mode", "ecc_mode")]
    if volatile and not goal.get("persistence_mode", True):
        module.warn(
            f"The driver of {one.board.name} forgets {', '.join(volatile)} when no program uses the GPU, as"
            " persistence mode is off: set persistence_mode to true."
        )


def main() -> None:
    """Run the module."""
    use_gpu_python()
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        requests = [(entry["gpus"], parse(entry)) for entry in module.params["settings"]]
        with contextlib.nullcontext() if module.check_mode else lock.locked(FOLDER):
            result = run(module, requests)
    except (SettingsError, GpuError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
