#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a batch job of a user of Slurm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_job
short_description: Have a batch job of a user submitted to Slurm
version_added: 0.1.0
description:
  - Submits a job with C(sbatch), with the rights of its owner, and ends it. It runs as root on a machine that
    can submit jobs.
  - The job is known by its owner and its name, by a comment that it has in Slurm, and by a file in
    C(/var/lib/gpufarm/slurm_job). No job of others is ever looked at or ended.
  - A job that was submitted with the same definition is not submitted again, also when it is over. A job
    with another definition is ended and submitted again if it waits, and refused if it runs, as its work
    would be lost.
  - Command, folder and environment are data. No line of the command is an option of C(sbatch), and paths have
    no patterns.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
  - gpufarm.cluster.made_for
attributes:
  diff_mode:
    support: full
    description: Returns the definitions, without the values of variables.
options:
  owner:
    description: Account of a person, on this machine and all nodes.
    type: str
    required: true
  job:
    description: The job. The role P(gpufarm.cluster.slurm_job#role) describes its fields.
    type: dict
    required: true
    suboptions:
      name: {description: Its name., type: str, required: true}
      command: {description: Lines of a script of bash., type: str, default: ""}
      folder: {description: Folder below the home., type: str, default: ""}
      partition: {description: Partition; empty for the default one., type: str, default: ""}
      cpus: {description: Number of cores., type: int, default: 1}
      memory: {description: Memory in MiB., type: int, default: 1024}
      gpus: {description: Number of GPUs or slices., type: int, default: 0}
      gpu: {description: Profile or model; empty for any., type: str, default: ""}
      minutes: {description: Longest time., type: int, default: 60}
      environment: {description: Variables., type: dict, default: {}}
  state:
    description:
      - Whether the job is submitted. V(absent) ends it, and leaves what it has written.
      - If the account of the owner was removed since, root ends the job with the comment of the submission.
    type: str
    choices: [present, absent]
    default: present
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Train on a slice
  gpufarm.cluster.slurm_job:
    owner: ada
    job: {name: train, command: python3 train.py, gpus: 1, gpu: 1g.10gb, memory: 8192, minutes: 120}
  register: train
"""

RETURN = r"""
number:
  description: Number of the job; 0 if there is none yet, or none any more.
  returned: success
  type: int
  sample: 17
state:
  description: >-
    V(waiting), V(running), V(succeeded), V(failed), V(killed), V(lost), V(unknown) if Slurm has forgotten the
    job, or empty without a job.
  returned: success
  type: str
reason:
  description: Why it is in this state, a sentence as long as it waits, else in the words of Slurm.
  returned: success
  type: str
exit_code:
  description: Exit status of the script, as shells tell it; empty before the end.
  returned: success
  type: str
stdout:
  description: Path of what it prints.
  returned: success
  type: str
  sample: /home/ada/train-17.out
stderr:
  description: Path of what it prints as errors.
  returned: success
  type: str
"""

import pwd
import secrets
import socket
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._made_for import OPTIONS, foreign, refusal
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.console import WAITING
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm import job as jobs
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io.job import (
    COMPLETING,
    Memories,
    Slurm,
    account,
    check_folder,
    make_home,
    makes_homes,
)

JOB = {
    "name": {"type": "str", "required": True},
    "command": {"type": "str", "default": ""},
    "folder": {"type": "str", "default": ""},
    "partition": {"type": "str", "default": ""},
    "cpus": {"type": "int", "default": 1},
    "memory": {"type": "int", "default": 1024},
    "gpus": {"type": "int", "default": 0},
    "gpu": {"type": "str", "default": ""},
    "minutes": {"type": "int", "default": 60},
    "environment": {"type": "dict", "default": {}},
}
PATIENCE = 90  # seconds in which a job ends; three times KillWait of Slurm (slurm.conf(5))
NOTHING = {"number": 0, "state": "", "reason": "", "exit_code": "", "stdout": "", "stderr": ""}


def result(slurm: Slurm, job: jobs.Job, number: int) -> dict[str, Any]:
    """Return what a job has come to."""
    told = slurm.told(job.name, number)
    paths = jobs.outputs(job, slurm.user.pw_dir, number)
    return {
        "number": number,
        "state": told.state,
        "reason": told.reason,
        "exit_code": told.exit_code,
        **paths,
    }


def present(module: AnsibleModule, slurm: Slurm, memories: Memories) -> dict[str, Any]:
    """Have the job submitted as it is asked for."""
    user, job = slurm.user, jobs.read_job(module.params["owner"], module.params["job"])
    slurm.refuse_its_own()
    if makes_homes() and not module.check_mode:
        make_home(user)
    # In check mode there may be nothing to look at yet.
    if not (makes_homes() and module.check_mode):
        check_folder(user, job, make=False)
    queued, memory = slurm.queue(), memories.read(job.name)
    if foreign(memory.made_for if memory else None, module.params):
        raise jobs.JobProblem(refusal(f"job {job.name} of {user.pw_name}"))
    decision = jobs.decide(user.pw_name, job, queued, memory)
    submits = decision.number == 0
    known = jobs.Memory(job, decision.nonce, decision.number, module.params["made_for"])
    diff = {"before": memory.job.shown() if memory else {}, "after": job.shown()}
    changed = submits or bool(decision.cancel)
    if module.check_mode:
        seen = {**NOTHING, "state": WAITING} if submits else result(slurm, job, decision.number)
        return {"changed": changed, "diff": diff, **seen}
    if decision.cancel:
        slurm.cancel(decision.cancel, waiting=submits)
        # One of them may have begun meanwhile.
        decision = jobs.decide(user.pw_name, job, slurm.queue(), memory)
    if submits:
        check_folder(user, job, make=True)
        known = known._replace(nonce=secrets.token_hex(8), number=0)
        # Before the job is there, so that a run that ends here is gone on with.
        memories.write(known)
        try:
            known = known._replace(number=slurm.submit(job, known.nonce))
        except jobs.JobProblem:
            memories.forget(job.name)
            raise
    if known != memory:
        memories.write(known)
    return {"changed": changed, "diff": diff, **result(slurm, job, known.number)}


def alive_of(name: str, slurm: Slurm, memory: jobs.Memory | None) -> list[jobs.Queued]:
    """Return the jobs that are ended.

    Among those of all users a name and a number say nothing, and only the comment of the submission counts.
    """
    queued = slurm.queue()
    if slurm.everyone:
        queued = [one for one in queued if memory and one.nonce == memory.nonce]
    return jobs.ours(name, queued, memory)


def absent(module: AnsibleModule, slurm: Slurm, memories: Memories) -> dict[str, Any]:
    """End the job, and forget it."""
    owner = module.params["owner"]
    name = jobs.read_name(owner, module.params["job"])
    memory = memories.read(name)
    if foreign(memory.made_for if memory else None, module.params):
        module.warn(f"The job {name} of {owner} was not made for this deployment; it stays.")
        return {"changed": False, "diff": {"before": {}, "after": {}}, **NOTHING}
    if memories.knows(name) and not slurm.is_there():
        # The machine has submitted the job, so Slurm was removed since: with its cluster, or from it alone.
        module.warn(
            f"{slurm.machine} has Slurm no more, so the job {name} of {owner} is forgotten. If its"
            " cluster is still there, and the job runs, it goes on."
        )
        alive = []
    else:
        if slurm.everyone:
            module.warn(
                f"{owner} is no account of a person on {slurm.machine} any more, so root ends the job {name}."
                " If its comment was changed, it goes on."
            )
        alive = alive_of(name, slurm, memory)
    changed = bool(alive) or memories.knows(name)
    if not module.check_mode:
        slurm.cancel([one.number for one in alive], waiting=False)
        deadline = time.monotonic() + PATIENCE
        while alive and any(one.state != COMPLETING for one in alive):
            if time.monotonic() > deadline:
                raise jobs.JobProblem(
                    f"The job {alive[0].number} of {owner} does not end; look at its node, and run again."
                )
            time.sleep(1)
            alive = alive_of(name, slurm, memory)
        memories.forget(name)
    before = {"name": name} if changed else {}
    return {"changed": changed, "diff": {"before": before, "after": {}}, **NOTHING}


def known_account(module: AnsibleModule, machine: str) -> pwd.struct_passwd | None:
    """Return the account of the owner; None for a removal without one."""
    try:
        return account(module.params["owner"], machine)
    except jobs.JobProblem:
        if module.params["state"] == "absent":
            return None
        raise


def keep(module: AnsibleModule) -> dict[str, Any]:
    """Bring the job in line and return the result."""
    machine = socket.gethostname()
    owner = module.params["owner"]
    name = jobs.read_name(owner, module.params["job"])
    memories = Memories(owner)
    user = known_account(module, machine)
    if user is None and not memories.knows(name):
        return {"changed": False, "diff": {"before": {}, "after": {}}, **NOTHING}
    slurm = Slurm(module, user or pwd.getpwuid(0), machine, everyone=user is None)
    work = absent if module.params["state"] == "absent" else present
    with memories.alone():
        return work(module, slurm, memories)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "owner": {"type": "str", "required": True},
            "job": {"type": "dict", "required": True, "options": JOB},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            **OPTIONS,
        },
        supports_check_mode=True,
    )
    try:
        done = keep(module)
    except jobs.JobProblem as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(**done)


if __name__ == "__main__":
    main()
