#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: drain agents of a Mesos cluster, plan windows for machines, and take both back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mesos_maintenance
short_description: Drain agents of a Mesos cluster, plan windows for machines, and take both back
version_added: 0.1.0
description:
  - V(drained) ends the tasks of agents in an orderly way, so that their frameworks start them elsewhere, and
    gives the agents no new ones. V(active) takes them back. Both survive restarts of masters and agents.
  - It is what has to be done before a driver is changed, a GPU is partitioned, or a machine is rebooted.
  - V(scheduled), V(down) and V(up) are about machines with all of their agents. V(scheduled) plans a window,
    of which frameworks are told with every offer, so that they may keep long tasks away; V(down) takes the
    machines out of the cluster, with which their agents end, tasks and all; V(up) lets them in again and ends
    the window. Mesos keeps windows apart from draining, so drain the agents before their machine goes down.
extends_documentation_fragment:
  - gpufarm.cluster.cluster_http
  - gpufarm.cluster.attributes.changing_module
options:
  agents:
    description: >-
      Agents by host name, by host name and port with a colon between, or by id; for V(scheduled), V(down) and
      V(up) they stand for their machines, which are known by their host names when the agents have gone.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(drained) for without tasks and without new ones, V(deactivated) for without new tasks only,
        V(active) for in use; V(scheduled) for with a window, V(down) for out of the cluster, V(up) for
        neither.
    type: str
    choices: [drained, deactivated, active, scheduled, down, up]
    required: true
  window:
    description: When the machines are maintained, for V(scheduled).
    type: dict
    suboptions:
      start:
        description: Start in UTC, as C(2026-12-01T06:00:00Z).
        type: str
        required: true
      duration:
        description: Length in seconds; none for no end.
        type: float
  max_grace_period:
    description: Seconds that tasks may take to end, at most. Without it, as long as each of them asks for.
    type: float
  wait_timeout:
    description: Seconds to wait until all of them are drained; 0 for not to wait.
    type: float
    default: 600
attributes:
  diff_mode:
    support: full
    description: Returns what is before and after.
"""

EXAMPLES = r"""
- name: Drain a machine
  gpufarm.cluster.mesos_maintenance:
    urls: [https://master1.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    agents: [gpu1.example.org]
    state: drained
    max_grace_period: 120

- name: Take it back
  gpufarm.cluster.mesos_maintenance:
    urls: [https://master1.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    agents: [gpu1.example.org]
    state: active

- name: Plan two hours of work on it
  gpufarm.cluster.mesos_maintenance:
    urls: [https://master1.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    agents: [gpu1.example.org]
    state: scheduled
    window: {start: "2026-12-01T06:00:00Z", duration: 7200}
"""

RETURN = r"""
agents:
  description: The agents, each with C(id), C(hostname) and C(state), as they are now.
  returned: when O(state) is drained, deactivated or active
  type: list
  elements: dict
machines:
  description: >-
    The machines, each with C(hostname), C(ip) and C(state), and the window's C(start), empty for none, and
    C(duration).
  returned: when O(state) is scheduled, down or up
  type: list
  elements: dict
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import ClusterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.agents import (
    DRAINED,
    Agent,
    AgentError,
    call_for,
    choose,
    reached,
    read_agents,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.machines import (
    DOWN,
    SCHEDULED,
    UP,
    Machine,
    MachineError,
    Schedule,
    after,
    line,
    plan,
    read_down,
    read_machines,
    read_schedule,
    told,
    window_of,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.machines import choose as choose_machines

STATES = ["drained", "deactivated", "active", SCHEDULED, DOWN, UP]
PAUSE = 1.0  # seconds between two looks


def wait(module: AnsibleModule, client: MesosClient, chosen: list[Agent]) -> list[Agent]:
    """Wait until the agents are in the state that is wanted, and return them."""
    names = [one.id for one in chosen]
    end = time.monotonic() + module.params["wait_timeout"]
    while True:
        agents = choose(read_agents(client.call("GET_AGENTS")), names)
        late = [one.hostname for one in agents if not reached(one, module.params["state"])]
        if not late or module.params["wait_timeout"] == 0:
            return agents
        if time.monotonic() >= end:
            raise ClusterError(
                f"{', '.join(late)} still has tasks after {module.params['wait_timeout']:g} seconds; give a"
                " max_grace_period, or wait longer. It goes on draining."
            )
        time.sleep(PAUSE)


def keep(module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Bring agents or machines into the state and return the result."""
    machines = module.params["state"] in (SCHEDULED, DOWN, UP)
    return (keep_machines if machines else keep_agents)(module, client)


def keep_machines(module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Bring machines into the state and return the result."""
    state = module.params["state"]
    window = window_of(module.params["window"]) if state == SCHEDULED else None

    def look() -> tuple[Schedule, list[Machine]]:
        schedule = read_schedule(client.call("GET_MAINTENANCE_SCHEDULE"))
        return schedule, read_down(client.call("GET_MAINTENANCE_STATUS"))

    schedule, down = look()
    chosen = choose_machines(read_machines(client.call("GET_AGENTS")), schedule, module.params["agents"])
    calls = plan(schedule, down, chosen, state, window)
    before = told(schedule, down, chosen)
    now = after(before, state, window) if calls else before
    if calls and not module.check_mode:
        for kind, fields in calls:
            client.call(kind, fields)
        now = told(*look(), chosen)
    return {
        "changed": bool(calls),
        "machines": now,
        "diff": {"before": "".join(map(line, before)), "after": "".join(map(line, now))},
    }


def keep_agents(module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Bring agents into the state and return the result."""
    state = module.params["state"]
    before = choose(read_agents(client.call("GET_AGENTS")), module.params["agents"])
    calls = [(one, call_for(one, state, module.params["max_grace_period"])) for one in before]
    changed = [one for one, call in calls if call]
    after = [one if reached(one, state) else one._replace(state=state) for one in before]
    if not module.check_mode:
        for _agent, call in calls:
            if call:
                client.call(call["kind"], call["fields"])
        if changed or state == DRAINED:
            after = wait(module, client, before)
    return {
        "changed": bool(changed),
        "agents": [{"id": one.id, "hostname": one.hostname, "state": one.state} for one in after],
        "diff": {
            "before": "".join(f"{one.hostname}: {one.state}\n" for one in changed),
            "after": "".join(f"{one.hostname}: {state}\n" for one in changed),
        },
    }


def main() -> None:
    """Run the module."""
    options = {
        "agents": {"type": "list", "elements": "str", "required": True},
        "state": {"type": "str", "choices": STATES, "required": True},
        "window": {
            "type": "dict",
            "options": {"start": {"type": "str", "required": True}, "duration": {"type": "float"}},
        },
        "max_grace_period": {"type": "float"},
        "wait_timeout": {"type": "float", "default": 600},
    }
    run(MesosClient, keep, options, AgentError, MachineError)


if __name__ == "__main__":
    main()
