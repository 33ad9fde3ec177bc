#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the jobs of a Chronos."""

from __future__ import annotations

DOCUMENTATION = r"""
module: chronos_info
short_description: Tell the jobs of a Chronos, and how they do
version_added: 0.1.0
description:
  - Asks a Chronos who leads, and for its jobs with their definition, what they do, and how their last run
    ended.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
  - gpufarm.cluster.cluster_http
options:
  names:
    description: Names of the jobs that are wanted; empty for all.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Ask Chronos
  gpufarm.cluster.chronos_info:
    urls: [https://chronos1.example.org:8443]
  register: chronos

- name: Tell the jobs that have failed
  ansible.builtin.debug:
    msg: "{{ chronos.jobs | selectattr('status', '==', 'failure') | map(attribute='name') }}"
"""

RETURN = r"""
leader:
  description: The leader as C(HOST:PORT).
  returned: success
  type: str
  sample: chronos1.example.org:8443
jobs:
  description:
    - The jobs as Chronos tells them, without C(environmentVariables), and C(state), such as C(idle) or C(1
      running), and C(status), which is C(fresh), C(success) or C(failure).
  returned: success
  type: list
  elements: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._chronos.io.api import Chronos
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run


def gather(module: AnsibleModule, chronos: Chronos) -> dict[str, Any]:
    """Return what Chronos tells."""
    leader = chronos.client.request("GET", "/v1/scheduler/leader").json()["leader"]
    jobs = chronos.jobs()
    told = {row["name"]: row for row in chronos.summary()}
    wanted = module.params["names"]
    return {
        "changed": False,
        "leader": leader,
        "jobs": [
            {
                **{name: value for name, value in job.items() if name != "environmentVariables"},
                "state": told.get(job["name"], {}).get("state", ""),
                "status": told.get(job["name"], {}).get("status", ""),
            }
            for job in jobs
            if not wanted or job["name"] in wanted
        ],
    }


def main() -> None:
    """Run the module."""
    run(Chronos.at, gather, {"names": {"type": "list", "elements": "str", "default": []}})


if __name__ == "__main__":
    main()
