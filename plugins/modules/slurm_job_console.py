#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what a batch job of a user of Slurm has printed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_job_console
short_description: Tell how a batch job of Slurm went, and what it has printed
version_added: 0.1.0
description:
  - Asks Slurm for a job that M(gpufarm.cluster.slurm_job) has submitted on this machine, and reads the end of
    what it has printed, both with the rights of its owner.
extends_documentation_fragment: [gpufarm.cluster.attributes.info_module]
options:
  owner:
    description: Account of a person.
    type: str
    required: true
  name:
    description: Name of the job.
    type: str
    required: true
  made_for:
    description: For whom M(gpufarm.cluster.slurm_job) has submitted it. A job for anybody else is not told.
    type: str
    default: ""
  kib:
    description: KiB at the end of each of C(stdout) and C(stderr) that are read.
    type: int
    default: 64
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: See how the training goes
  gpufarm.cluster.slurm_job_console:
    owner: ada
    name: train
  register: train
"""

RETURN = r"""
tasks:
  description:
    - The job, with the fields that M(gpufarm.cluster.mesos_console) returns. RV(tasks[].machine) has its
      nodes. Slurm may have forgotten when it began, and all of that but its output.
  returned: success
  type: list
  elements: dict
  contains:
    id: {description: Its number., type: str}
    machine: {description: Its nodes., type: str}
    own: {description: True; it was submitted for O(made_for)., type: bool}
"""

import socket
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.console import LOST, WAITING
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm import job as jobs
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io.job import (
    Memories,
    Slurm,
    account,
    end_of,
)


def gather(module: AnsibleModule) -> dict[str, Any]:
    """Return how the job goes and what it has printed."""
    machine, owner = socket.gethostname(), module.params["owner"]
    if module.params["kib"] < 1:
        raise jobs.JobProblem("kib is a number of 1 or more; correct it.")
    name = jobs.read_name(owner, {"name": module.params["name"]})
    user = account(owner, machine)
    memory, slurm = Memories(owner).read(name), Slurm(module, user, machine)
    number = 0
    if memory is not None and memory.made_for == module.params["made_for"]:
        number = jobs.number_of(slurm.queue(), memory)
    if memory is None or not number:
        raise jobs.JobProblem(
            f"{machine} has submitted no job {name} of {owner} for this deployment; apply its definition"
            " again."
        )
    told = slurm.told(name, number)
    task: dict[str, Any] = {
        "id": str(number),
        "own": True,
        "state": LOST if told.state == jobs.UNKNOWN else told.state,
        "reason": told.reason,
        "begun": told.begun,
        "ended": told.ended,
        "machine": told.machine,
        "stdout": "",
        "stderr": "",
        "cut": [],
        "unread": "It has not begun yet." if told.state == WAITING else "",
    }
    if told.state == WAITING:
        return {"changed": False, "tasks": [task]}
    for stream, path in jobs.outputs(memory.job, user.pw_dir, number).items():
        try:
            task[stream], cut = end_of(user, path, module.params["kib"] * 1024)
        except OSError as error:
            task["unread"] = f"{owner} cannot read {path} on {machine}: {error}."
            continue
        task["cut"] += [stream] if cut else []
    return {"changed": False, "tasks": [task]}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "owner": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "made_for": {"type": "str", "default": ""},
            "kib": {"type": "int", "default": 64},
        },
        supports_check_mode=True,
    )
    try:
        done = gather(module)
    except jobs.JobProblem as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(**done)


if __name__ == "__main__":
    main()
