#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: set weights of the roles of a Mesos cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mesos_weights
short_description: Set weights of the roles of a Mesos cluster
version_added: 0.1.0
description:
  - Sets the weights by which roles share the cluster. Roles that are not named keep theirs.
  - Weights are never removed by Mesos; 1 is what a role has without one.
extends_documentation_fragment:
  - gpufarm.cluster.cluster_http
  - gpufarm.cluster.attributes.changing_module
options:
  weights:
    description: Weights by role, each a number above 0.
    type: dict
    required: true
attributes:
  diff_mode:
    support: full
    description: Returns what is before and after.
"""

EXAMPLES = r"""
- name: Give the physicists twice as much as others
  gpufarm.cluster.mesos_weights:
    urls: [https://master1.example.org:5050]
    username: operator
    password: "{{ operator_password }}"
    weights: {physics: 2}
"""

RETURN = r"""
weights:
  description: All weights by role, as they are now.
  returned: success
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import ClusterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.module import run
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.quota import (
    RequestError,
    plan_weights,
    read_weights,
)


def keep(module: AnsibleModule, client: MesosClient) -> dict[str, Any]:
    """Bring the weights in line and return the result."""
    plan_weights({}, module.params["weights"])
    current = read_weights(client.call("GET_WEIGHTS"))
    plan = plan_weights(current, module.params["weights"])
    if plan and not module.check_mode:
        infos = [{"role": role, "weight": weight} for role, weight in sorted(plan.items())]
        client.call("UPDATE_WEIGHTS", {"weight_infos": infos})
        if plan_weights(read_weights(client.call("GET_WEIGHTS")), module.params["weights"]):
            raise ClusterError(
                "Mesos has accepted the weights and does not show them; these credentials may lack the right "
                "to view "
                "roles (action view_roles)."
            )
    return {
        "changed": bool(plan),
        "weights": {**current, **plan},
        "diff": {
            "before": "".join(f"{role}: {current.get(role, 1):g}\n" for role in sorted(plan)),
            "after": "".join(f"{role}: {weight:g}\n" for role, weight in sorted(plan.items())),
        },
    }


def main() -> None:
    """Run the module."""
    run(MesosClient, keep, {"weights": {"type": "dict", "required": True}}, RequestError)


if __name__ == "__main__":
    main()
