#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: an app of Marathon."""

from __future__ import annotations

DOCUMENTATION = r"""
module: marathon_app
short_description: Keep an app of Marathon as it is defined
version_added: 0.1.0
description:
  - Creates, changes or removes an app, and waits until the deployment is done. If it is not done in time,
    the module says why, as told by the offers that Marathon has declined, by failed tasks and by health
    checks.
  - The definition is complete. Fields that it does not name go back to their defaults, except those that
    Marathon chooses by its own options (C(acceptedResourceRoles), C(executor), C(networks),
    C(portDefinitions), C(role)).
extends_documentation_fragment:
  - gpufarm.cluster.cluster_http
  - gpufarm.cluster.attributes.changing_module
  - gpufarm.cluster.made_for
attributes:
  diff_mode:
    support: full
    description: Returns the fields that differ, without the values of O(secret_env).
  idempotent:
    support: full
    description: A second run changes nothing, and waits for a deployment that still goes on.
options:
  app:
    description:
      - The definition in Marathon's own words. It needs C(id); with O(state=absent) nothing else is looked
        at.
      - Fields that do not exist, are outdated or are only read are refused.
    type: dict
    required: true
  secret_env:
    description: More variables of the app's environment, whose values are shown nowhere.
    type: dict
    default: {}
  state:
    description: Whether the app is there.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether another deployment that holds the app is given up; if not, it is waited for.
    type: bool
    default: false
  wait:
    description: Whether to wait until the deployment is done.
    type: bool
    default: true
  wait_timeout:
    description: Seconds that a deployment may take.
    type: float
    default: 300
"""

EXAMPLES = r"""
- name: Run a notebook on a GPU
  gpufarm.cluster.marathon_app:
    urls: [https://marathon1.example.org:8443, https://marathon2.example.org:8443]
    username: marathon
    password: "{{ marathon_password }}"
    app:
      id: /ada/notebook
      cpus: 4
      mem: 16384
      gpus: 1
      container:
        type: MESOS
        docker: {image: "jupyter/minimal-notebook@sha256:..."}
      upgradeStrategy: {minimumHealthCapacity: 0, maximumOverCapacity: 0}
    secret_env:
      NOTEBOOK_PASSWORD_HASH: "{{ notebook_hash }}"

- name: Remove it
  gpufarm.cluster.marathon_app:
    urls: [https://marathon1.example.org:8443]
    app: {id: /ada/notebook}
    state: absent
"""

RETURN = r"""
app:
  description: The app as Marathon tells it, without C(env), C(tasks) and C(deployments); empty when there
    is none.
  returned: success
  type: dict
tasks:
  description: Its tasks, each with C(id), C(host), C(ports) and C(state).
  returned: success
  type: list
  elements: dict
deployment:
  description: Number of the deployment that this run has begun; empty for none.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import ClusterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._made_for import (
    MADE_FOR,
    OPTIONS,
    foreign,
    refusal,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.app import (
    AppProblem,
    difference,
    masked,
    read_app,
    read_path,
    warnings,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._marathon.io.api import Marathon


def shown(app: dict[str, Any]) -> dict[str, Any]:
    """Return what a result tells of an app."""
    hidden = ("env", "tasks", "deployments")
    return {
        "app": {name: value for name, value in app.items() if name not in hidden},
        "tasks": [
            {name: task.get(name) for name in ("id", "host", "ports", "state")}
            for task in app.get("tasks", ())
        ],
    }


def holder(app: dict[str, Any]) -> str | None:
    """Return for whom an app says it was made; None if there is none."""
    return str((app.get("labels") or {}).get(MADE_FOR, "")) if app else None


def present(module: AnsibleModule, marathon: Marathon) -> dict[str, Any]:
    """Make the app be as it is defined."""
    secret = module.params["secret_env"]
    wanted = read_app(module.params["app"])
    plain = wanted.get("env") or {}
    wanted["env"] = {**plain, **secret}
    for text in warnings(wanted):
        module.warn(text)
    path, seconds = wanted["id"], module.params["wait_timeout"]
    if module.params["made_for"]:
        wanted["labels"] = {**(wanted.get("labels") or {}), MADE_FOR: module.params["made_for"]}
    current = marathon.app(path)
    if foreign(holder(current), module.params):
        raise AppProblem(refusal(f"app {path}"))
    before, after = difference(current, wanted)
    changed = bool(before or after)
    result: dict[str, Any] = {
        "changed": changed,
        "deployment": "",
        "diff": {"before": masked(before, plain), "after": masked(after, plain)},
    }
    if module.check_mode:
        return {**result, **shown(current)}
    going_on = [one["id"] for one in current.get("deployments", ())]
    if changed:
        resource = f"/v2/apps{path}?partialUpdate=false"
        going_on = [marathon.change("PUT", resource, wanted, module.params["force"], seconds)]
        result["deployment"] = going_on[0]
    if module.params["wait"]:
        for number in going_on:
            marathon.wait(number, seconds)
    final = marathon.app(path)
    if module.params["wait"] and any(difference(final, wanted)):
        raise ClusterError(
            f"{path} is not as it was defined: its deployment was given up or rolled back by somebody else."
        )
    return {**result, **shown(final)}


def absent(module: AnsibleModule, marathon: Marathon) -> dict[str, Any]:
    """Make the app be gone."""
    path = read_path(str(module.params["app"].get("id", "")))
    current = marathon.app(path)
    if foreign(holder(current), module.params):
        module.warn(f"The app {path} was not made for this deployment; it stays.")
        return {"changed": False, "deployment": "", "diff": {"before": {}, "after": {}}, **shown(current)}
    result = {
        "changed": bool(current),
        "deployment": "",
        "diff": {"before": {"id": path} if current else {}, "after": {}},
    }
    if current and not module.check_mode:
        seconds = module.params["wait_timeout"]
        number = marathon.change("DELETE", "/v2/apps" + path, None, module.params["force"], seconds)
        result["deployment"] = number
        if module.params["wait"]:
            marathon.wait(number, seconds)
    return {**result, **shown({})}


def keep(module: AnsibleModule, marathon: Marathon) -> dict[str, Any]:
    """Bring the app in line and return the result."""
    return (present if module.params["state"] == "present" else absent)(module, marathon)


def main() -> None:
    """Run the module."""
    options = {
        "app": {"type": "dict", "required": True},
        "secret_env": {"type": "dict", "default": {}, "no_log": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        **OPTIONS,
        "force": {"type": "bool", "default": False},
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "float", "default": 300},
    }
    run(Marathon.at, keep, options, AppProblem)


if __name__ == "__main__":
    main()
