#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a job of Chronos."""

from __future__ import annotations

DOCUMENTATION = r"""
module: chronos_job
short_description: Keep a job of Chronos as it is defined
version_added: 0.1.0
description:
  - Creates, changes or removes a job, and reads it back, as Chronos drops what it does not know without a
    word.
  - A job with GPUs is created switched off, and switched on when Chronos has kept C(gpus). Only builds with
    the patch for GPUs do (Chronos pull request 810); others would run the job without a GPU.
  - The definition is complete. Fields that it does not name go back to their defaults, but C(cpus), C(mem),
    C(disk) and C(runAsUser) are left to Chronos' own options.
  - Chronos counts the repeats of a schedule down and moves its start on. A schedule counts as the same when
    these may come from runs. To begin anew, remove the job first.
extends_documentation_fragment:
  - gpufarm.cluster.cluster_http
  - gpufarm.cluster.attributes.changing_module
  - gpufarm.cluster.made_for
attributes:
  diff_mode:
    support: full
    description: Returns the fields that differ, without the values of O(secret_env).
options:
  job:
    description:
      - The definition in Chronos' own words. It needs C(name); with O(state=absent) nothing else is looked
        at.
      - Fields that Chronos would drop are refused.
    type: dict
    required: true
  secret_env:
    description: More environment variables of the job, whose values are shown nowhere.
    type: dict
    default: {}
  state:
    description: Whether the job is there. Removing it ends what runs of it.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Train every night on a GPU
  gpufarm.cluster.chronos_job:
    urls: [https://chronos1.example.org:8443]
    username: chronos
    password: "{{ chronos_password }}"
    job:
      name: ada.train
      schedule: R/2027-01-01T02:00:00Z/P1D
      command: python3 /lustre/home/ada/train.py
      cpus: 4
      mem: 16384
      gpus: 1
      container: {type: MESOS, image: "nvidia/cuda@sha256:..."}

- name: Remove it
  gpufarm.cluster.chronos_job:
    urls: [https://chronos1.example.org:8443]
    job: {name: ada.train}
    state: absent
"""

RETURN = r"""
job:
  description: The job as Chronos tells it, without C(environmentVariables); empty when there is none.
  returned: success
  type: dict
"""

from datetime import datetime, timezone
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos.io.api import Chronos
from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos.job import (
    JobProblem,
    difference,
    masked,
    read_job,
    read_name,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._made_for import (
    MADE_FOR,
    OPTIONS,
    foreign,
    refusal,
)


def shown(job: dict[str, Any]) -> dict[str, Any]:
    """Return what a result tells of a job."""
    return {name: value for name, value in job.items() if name != "environmentVariables"}


def holder(job: dict[str, Any]) -> str | None:
    """Return for whom a job says it was made; None if there is none."""
    values = {one["name"]: one["value"] for one in job.get("environmentVariables") or ()}
    return str(values.get(MADE_FOR, "")) if job else None


def present(module: AnsibleModule, chronos: Chronos) -> dict[str, Any]:
    """Make the job be as it is defined."""
    secret = module.params["secret_env"]
    wanted = read_job(module.params["job"])
    plain = {one["name"]: one.get("value") for one in wanted.get("environmentVariables") or ()}
    more = sorted(secret.items())
    if module.params["made_for"]:
        plain[MADE_FOR] = module.params["made_for"]
        more.append((MADE_FOR, module.params["made_for"]))
    if more:
        own = [one for one in wanted.get("environmentVariables") or () if one["name"] != MADE_FOR]
        wanted["environmentVariables"] = [*own, *({"name": name, "value": value} for name, value in more)]
    current = chronos.job(wanted["name"])
    if foreign(holder(current), module.params):
        raise JobProblem(refusal(f"job {wanted['name']}"))
    before, after = difference(current, wanted, datetime.now(timezone.utc))
    result: dict[str, Any] = {
        "changed": bool(before or after),
        "diff": {"before": masked(before, plain), "after": masked(after, plain)},
    }
    if result["changed"] and not module.check_mode:
        current = chronos.put(wanted, current)
    return {**result, "job": shown(current)}


def absent(module: AnsibleModule, chronos: Chronos) -> dict[str, Any]:
    """Make the job be gone."""
    name = read_name(module.params["job"].get("name"))
    current = chronos.job(name)
    if foreign(holder(current), module.params):
        module.warn(f"The job {name} was not made for this deployment; it stays.")
        return {"changed": False, "diff": {"before": {}, "after": {}}, "job": shown(current)}
    if current and not module.check_mode:
        chronos.delete(name)
    return {
        "changed": bool(current),
        "diff": {"before": {"name": name} if current else {}, "after": {}},
        "job": {},
    }


def keep(module: AnsibleModule, chronos: Chronos) -> dict[str, Any]:
    """Bring the job in line and return the result."""
    return (present if module.params["state"] == "present" else absent)(module, chronos)


def main() -> None:
    """Run the module."""
    options = {
        "job": {"type": "dict", "required": True},
        "secret_env": {"type": "dict", "default": {}, "no_log": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        **OPTIONS,
    }
    run(Chronos.at, keep, options, JobProblem)


if __name__ == "__main__":
    main()
