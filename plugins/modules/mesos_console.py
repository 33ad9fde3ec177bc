#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: what tasks of Mesos have printed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mesos_console
short_description: Tell how tasks of Mesos went, and what they have printed
version_added: 0.1.0
description:
  - Asks the master that leads for tasks, and their agents for the end of what these have printed.
  - The tasks are those whose ids are given, or the runs of a job of Chronos. A master remembers tasks that
    are over, by default the last 1000 of a framework, until another master leads.
  - Agents are asked with the scheme and the credentials of the masters.
extends_documentation_fragment: [gpufarm.cluster.cluster_http, gpufarm.cluster.attributes.info_module]
options:
  framework:
    description: Id of the framework that has started O(tasks).
    type: str
    default: ""
  tasks:
    description: Ids of the tasks that are wanted.
    type: list
    elements: str
    default: []
  job:
    description: Name of the job of Chronos whose runs are wanted, in place of O(framework) and O(tasks).
    type: str
    default: ""
  most:
    description: Number of tasks that are told, those that began last.
    type: int
    default: 10
  kib:
    description: KiB at the end of each of C(stdout) and C(stderr) that are read.
    type: int
    default: 64
"""

EXAMPLES = r"""
- name: See how the last nights went
  gpufarm.cluster.mesos_console:
    urls: [https://master1.example.org:5050, https://master2.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    job: ada.train
  register: nights

- name: Show what the last one has printed
  ansible.builtin.debug:
    msg: "{{ (nights.tasks | first).stdout }}"
"""

RETURN = r"""
tasks:
  description: The tasks, those that began last first.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Its own id; no other task has it.
      type: str
    state:
      description: V(waiting), V(running), V(succeeded), V(failed), V(killed) or V(lost).
      type: str
    reason:
      description: Why it is in this state, in the words of Mesos; empty if that says nothing.
      type: str
    begun:
      description: When it began, in seconds since 1970; 0 for not yet.
      type: float
    ended:
      description: When it ended, in seconds since 1970; 0 for not yet.
      type: float
    machine:
      description: Host name of the agent.
      type: str
    stdout:
      description:
        - The end of what it has printed, without escape sequences of terminals; what is no text in UTF-8 is a
          replacement character.
      type: str
    stderr:
      description: The same of what it has printed as errors.
      type: str
    cut:
      description: Those of C(stdout) and C(stderr) of which there is more than was read.
      type: list
      elements: str
    unread:
      description: A sentence that says why nothing was read; empty if it was.
      type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import Connection
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.console import (
    ConsoleError,
    read_tasks,
    runs_of,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.sandbox import Sandboxes


def gather(module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Return the tasks and what they have printed."""
    asked = module.params
    if asked["most"] < 1 or asked["kib"] < 1:
        raise ConsoleError("most and kib are numbers of 1 or more; correct them.")
    if bool(asked["job"]) == bool(asked["framework"]):
        raise ConsoleError("Give a job of Chronos, or a framework with the ids of its tasks; not both.")
    tasks = read_tasks(client.call("GET_TASKS"))
    if asked["job"]:
        told = client.call("GET_FRAMEWORKS").get("frameworks") or []
        registered = {one["framework_info"]["id"]["value"] for one in told}
        chosen = runs_of(tasks, asked["job"], registered)
    else:
        wanted = {(asked["framework"], name) for name in asked["tasks"]}
        chosen = [task for task in tasks if (task.framework, task.id) in wanted]
    chosen = chosen[: asked["most"]]
    agents = {}
    if chosen:
        told = client.call("GET_AGENTS").get("agents") or []
        agents = {one["agent_info"]["id"]["value"]: one for one in told}
    sandboxes = Sandboxes(Connection.of(asked), agents, asked["kib"] * 1024)
    shown = ("id", "state", "reason", "begun", "ended")
    return {
        "changed": False,
        "tasks": [
            {**{name: getattr(task, name) for name in shown}, **sandboxes.printed(task)} for task in chosen
        ],
    }


def main() -> None:
    """Run the module."""
    options = {
        "framework": {"type": "str", "default": ""},
        "tasks": {"type": "list", "elements": "str", "default": []},
        "job": {"type": "str", "default": ""},
        "most": {"type": "int", "default": 10},
        "kib": {"type": "int", "default": 64},
    }
    run(MesosClient, gather, options, ConsoleError)


if __name__ == "__main__":
    main()
