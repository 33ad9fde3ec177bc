#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a group of Marathon."""

from __future__ import annotations

DOCUMENTATION = r"""
module: marathon_group
short_description: Keep a group of Marathon, such as that of a user
version_added: 0.1.0
description:
  - Creates, changes or removes a group.
  - A top-level group whose role is enforced is what a quota per user needs. All that runs in it counts for
    the Mesos role that has the group's name, which a quota limits (M(gpufarm.cluster.mesos_quota)).
extends_documentation_fragment:
  - gpufarm.cluster.cluster_http
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the group before and after.
options:
  id:
    description: Path of the group, such as V(/ada).
    type: str
    required: true
  enforce_role:
    description:
      - Whether apps of a top-level group must have the role that has its name. Apps that are there keep
        their role until they are changed.
      - If it is not given, a group that is there keeps what it has, and a new one gets what Marathon's
        option C(new_group_enforce_role) says.
    type: bool
  dependencies:
    description: Paths of the groups or apps that have to run before those of this group; if it is not
      given, they stay.
    type: list
    elements: str
  state:
    description: Whether the group is there.
    type: str
    choices: [present, absent]
    default: present
  recursive:
    description:
      - Whether a group is removed together with all that runs in it. If not, only an empty group is
        removed.
    type: bool
    default: false
  force:
    description: Whether another deployment that holds the group is given up; if not, it is waited for.
    type: bool
    default: false
  wait_timeout:
    description: Seconds that a deployment may take.
    type: float
    default: 300
"""

EXAMPLES = r"""
- name: Give a user a group and a quota
  gpufarm.cluster.marathon_group:
    urls: [https://marathon1.example.org:8443]
    id: /ada
    enforce_role: true

- name: Remove it, with all that runs in it
  gpufarm.cluster.marathon_group:
    urls: [https://marathon1.example.org:8443]
    id: /ada
    state: absent
    recursive: true
"""

RETURN = r"""
group:
  description: The group with C(id), C(enforce_role), C(dependencies), C(apps) and C(groups), both paths;
    empty when there is none.
  returned: success
  type: dict
  sample: {id: /ada, enforce_role: true, dependencies: [], apps: [/ada/notebook], groups: []}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import AppProblem, read_path
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.group import content, plan, shown
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.io.api import Marathon


def apply(module: AnsibleModule, marathon: Marathon, path: str, requests: list[dict[str, Any]]) -> None:
    """Send requests, and wait for what they set off."""
    seconds = module.params["wait_timeout"]
    for request in requests:
        if request["method"] == "PATCH":
            marathon.client.request("PATCH", "/v2/groups" + path, request["body"], expect=(200, 202, 204))
            continue
        number = marathon.change(
            request["method"], "/v2/groups" + path, request["body"], module.params["force"], seconds
        )
        if number:
            marathon.wait(number, seconds)


def keep(module: AnsibleModule, marathon: Marathon) -> dict[str, Any]:
    """Bring the group in line and return the result."""
    params = module.params
    path = read_path(params["id"])
    current = marathon.group(path)
    if params["state"] == "absent":
        inside = content(current)
        if inside and not params["recursive"]:
            raise AppProblem(
                f"The group {path} holds {', '.join(inside)}; remove these first, or set recursive."
            )
        requests = [{"method": "DELETE", "body": None}] if current else []
        after: dict[str, Any] = {}
    else:
        requests, after = plan(path, current, params["enforce_role"], params["dependencies"])
    result = {
        "changed": bool(requests),
        "diff": {"before": shown(current), "after": after},
        "group": shown(current),
    }
    if requests and not module.check_mode:
        apply(module, marathon, path, requests)
        result["group"] = shown(marathon.group(path))
    return result


def main() -> None:
    """Run the module."""
    options = {
        "id": {"type": "str", "required": True},
        "enforce_role": {"type": "bool"},
        "dependencies": {"type": "list", "elements": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "recursive": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "wait_timeout": {"type": "float", "default": 300},
    }
    run(Marathon.at, keep, options, AppProblem)


if __name__ == "__main__":
    main()
