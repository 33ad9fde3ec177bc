#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: set quotas of the roles of a Mesos cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mesos_quota
short_description: Set quotas of the roles of a Mesos cluster
version_added: 0.1.0
description:
  - Sets what roles are guaranteed and what they may have at most, all of them at once or none.
  - A resource that O(quotas[].limits) does not name is not limited. To forbid GPUs, give C(gpus) as 0.
  - Roles that are not named stay as they are.
extends_documentation_fragment:
  - gpufarm.cluster.cluster_http
  - gpufarm.cluster.attributes.changing_module
options:
  quotas:
    description: The quotas.
    type: list
    elements: dict
    required: true
    suboptions:
      role:
        description: Name of the role; nested roles have no quota.
        type: str
        required: true
      guarantees:
        description: Amounts that the role gets first, by resource, C(mem) and C(disk) in MB.
        type: dict
        default: {}
      limits:
        description: Amounts that the role never exceeds, by resource.
        type: dict
        default: {}
      state:
        description: With V(absent) the role has no quota.
        type: str
        choices: [present, absent]
        default: present
  force:
    description: Whether guarantees may exceed the cluster, and limits be lower than what a role holds.
        Nothing is ended.
    type: bool
    default: false
attributes:
  diff_mode:
    support: full
    description: Returns what is before and after.
"""

EXAMPLES = r"""
- name: Let alice have two GPUs, and bob none
  gpufarm.cluster.mesos_quota:
    urls: [https://master1.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    quotas:
      - role: alice
        limits: {cpus: 16, mem: 65536, gpus: 2}
      - role: bob
        limits: {cpus: 16, mem: 65536, gpus: 0}
"""

RETURN = r"""
quotas:
  description: The quotas of the roles that are named, as they are now.
  returned: success
  type: list
  elements: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import ClusterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.quota import (
    RequestError,
    lines,
    names_of,
    plan_quotas,
    quota_request,
    read_quotas,
    read_request,
)


def keep(module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Bring the quotas in line and return the result."""
    request = read_request(module.params["quotas"])
    current = read_quotas(client.call("GET_QUOTA"))
    plan = plan_quotas(current, request)
    after = {role: quota for role, quota in {**current, **request}.items() if role in request and any(quota)}
    if plan and not module.check_mode:
        client.call("UPDATE_QUOTA", quota_request(plan, module.params["force"]))
        if plan_quotas(read_quotas(client.call("GET_QUOTA")), request):
            raise ClusterError(
                "Mesos has accepted the quotas and does not show them; these credentials may lack the right "
                "to read "
                "quotas (action get_quotas)."
            )
    roles = sorted(plan)
    return {
        "changed": bool(plan),
        "quotas": names_of(after),
        "diff": {"before": lines(current, roles), "after": lines(request, roles)},
    }


def main() -> None:
    """Run the module."""
    quota = {
        "role": {"type": "str", "required": True},
        "guarantees": {"type": "dict", "default": {}},
        "limits": {"type": "dict", "default": {}},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }
    options = {
        "quotas": {"type": "list", "elements": "dict", "required": True, "options": quota},
        "force": {"type": "bool", "default": False},
    }
    run(MesosClient, keep, options, RequestError)


if __name__ == "__main__":
    main()
