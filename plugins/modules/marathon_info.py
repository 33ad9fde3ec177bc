#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what a Marathon is, and what runs on it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: marathon_info
short_description: Tell who leads, what runs, and what waits and why
version_added: 0.1.0
description:
  - Asks a Marathon for its version and leader, its apps with their tasks, and what waits, with the reason.
extends_documentation_fragment:
  - gpufarm.cluster.attributes.info_module
  - gpufarm.cluster.cluster_http
options:
  id:
    description: Only apps with this path, or in the group that has it; empty for all.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Ask Marathon
  gpufarm.cluster.marathon_info:
    urls: [https://marathon1.example.org:8443]
  register: marathon

- name: Tell what waits
  ansible.builtin.debug:
    msg: "{{ marathon.waiting | map(attribute='reason') }}"
"""

RETURN = r"""
leader:
  description: The leader as C(HOST:PORT).
  returned: success
  type: str
  sample: marathon1.example.org:8443
version:
  description: Version of Marathon.
  returned: success
  type: str
  sample: 1.11.24
features:
  description: Optional features that are on.
  returned: success
  type: list
  elements: str
  sample: [gpu_resources]
framework_id:
  description: How Mesos knows it; empty until it has registered.
  returned: success
  type: str
apps:
  description:
    - The apps, each with C(id), C(instances), C(role), C(cpus), C(mem), C(disk), C(gpus), C(running),
      C(healthy), C(unhealthy), C(version), C(tasks) with C(id), C(host), C(ports) and C(state),
      C(failed_task), the id of the task that failed last, which is empty if none did, and C(made_for), for
      whom M(gpufarm.cluster.marathon_app) has made it, which is empty if the app does not say so.
  returned: success
  type: list
  elements: dict
waiting:
  description: Apps with fewer instances than wanted, each with C(id), C(count) and C(reason).
  returned: success
  type: list
  elements: dict
deployments:
  description: The deployments that go on, each with C(id), C(apps) and C(version).
  returned: success
  type: list
  elements: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._made_for import MADE_FOR
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import AppProblem, read_path
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.io.api import Marathon
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.wait import waiting

EMBEDDED = "embed=apps.tasks&embed=app.tasks&embed=apps.lastTaskFailure"
SHOWN = ("id", "instances", "role", "cpus", "mem", "disk", "gpus", "version")


def row(app: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of an app."""
    return {
        **{name: app.get(name) for name in SHOWN},
        "running": app.get("tasksRunning", 0),
        "healthy": app.get("tasksHealthy", 0),
        "unhealthy": app.get("tasksUnhealthy", 0),
        "tasks": [
            {name: task.get(name) for name in ("id", "host", "ports", "state")}
            for task in app.get("tasks", ())
        ],
        "failed_task": (app.get("lastTaskFailure") or {}).get("taskId") or "",
        "made_for": (app.get("labels") or {}).get(MADE_FOR) or "",
    }


def gather(module: AnsibleModule, marathon: Marathon) -> dict[str, Any]:
    """Return what Marathon tells."""
    path = read_path(module.params["id"]) if module.params["id"].strip("/") else ""
    leader = marathon.read("/v2/leader")["leader"]
    info = marathon.read("/v2/info")
    apps = marathon.read(f"/v2/apps?{EMBEDDED}")["apps"]
    queue = [item for item in marathon.read("/v2/queue")["queue"] if item.get("app")]
    deployments = marathon.read("/v2/deployments")

    def chosen(name: str) -> bool:
        return not path or name == path or name.startswith(path + "/")

    return {
        "changed": False,
        "leader": leader,
        "version": info.get("version", ""),
        "features": (info.get("marathon_config") or {}).get("features") or [],
        "framework_id": info.get("frameworkId") or "",
        "apps": [row(app) for app in apps if chosen(app["id"])],
        "waiting": [
            {"id": item["app"]["id"], "count": item["count"], "reason": waiting(item)}
            for item in queue
            if chosen(item["app"]["id"])
        ],
        "deployments": [
            {"id": one["id"], "apps": one["affectedApps"], "version": one["version"]}
            for one in deployments
            if any(chosen(app) for app in one["affectedApps"])
        ],
    }


def main() -> None:
    """Run the module."""
    run(Marathon.at, gather, {"id": {"type": "str", "default": ""}}, AppProblem)


if __name__ == "__main__":
    main()
