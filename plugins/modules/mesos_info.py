#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: tell the state of a Mesos cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mesos_info
short_description: Tell the state of a Mesos cluster
version_added: 0.1.0
description:
  - Asks the master that leads for agents, roles, quotas and weights, and adds up what is free.
  - Mesos silently leaves out objects that the credentials may not view. Give them the rights to view agents,
    roles and quotas, or hidden objects are taken for absent.
extends_documentation_fragment: [gpufarm.cluster.cluster_http, gpufarm.cluster.attributes.info_module]
"""

EXAMPLES = r"""
- name: See what is free
  gpufarm.cluster.mesos_info:
    urls: [https://master1.example.org:5050, https://master2.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    ca_path: /etc/ssl/certs/cluster.pem
  register: mesos

- name: Show the GPUs that nobody uses
  ansible.builtin.debug:
    msg: "{{ mesos.free.gpus | default(0) }}"
"""

RETURN = r"""
leader:
  description: Address of the master that leads.
  returned: success
  type: str
version:
  description: Version of the master that leads.
  returned: success
  type: str
agents:
  description: The agents that are registered, sorted by host name.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: The master's name for it.
      type: str
    hostname:
      description: The machine's name.
      type: str
    port:
      description: Where it listens.
      type: int
    state:
      description: V(active), V(deactivated), V(draining) or V(drained).
      type: str
    resources:
      description: Total resources of the agent, C(mem) and C(disk) in MB.
      type: dict
    allocated:
      description: Resources that tasks and reservations hold.
      type: dict
    attributes:
      description: Its attributes.
      type: dict
total:
  description: Resources of all active agents.
  returned: success
  type: dict
  sample: {cpus: 64.0, mem: 256000.0, disk: 1000000.0, gpus: 8.0}
free:
  description: Free resources of all active agents.
  returned: success
  type: dict
quotas:
  description: The quotas, each with C(role), C(guarantees), C(limits) and C(consumed), all by resource.
  returned: success
  type: list
  elements: dict
weights:
  description: Weights by role; a role that is not named has 1.
  returned: success
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.agents import ACTIVE, read_agents
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.quota import (
    left_of,
    names_of,
    read_quotas,
    read_weights,
    sum_of,
)


def gather(_module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Return the state of the cluster."""
    version = client.call("GET_VERSION")["version_info"]["version"]
    agents = read_agents(client.call("GET_AGENTS"))
    quotas = names_of(read_quotas(client.call("GET_QUOTA")))
    consumed = {one["name"]: (one.get("quota") or {}).get("consumed") or {} for one in client.roles()}
    for quota in quotas:
        used = consumed.get(quota["role"], {})
        quota["consumed"] = {name: value for name, value in used.items() if not isinstance(value, str)}
    usable = [one for one in agents if one.state == ACTIVE]
    total = sum_of([one.resources for one in usable])
    return {
        "changed": False,
        "leader": client.http.leader or "",
        "version": version,
        "agents": [one._asdict() for one in agents],
        "total": total,
        "free": left_of(total, sum_of([one.allocated for one in usable])),
        "quotas": quotas,
        "weights": read_weights(client.call("GET_WEIGHTS")),
    }


def main() -> None:
    """Run the module."""
    run(MesosClient, gather, {})


if __name__ == "__main__":
    main()
