# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs under the names that dashboards and clients of INDIGO-DataCloud look for. Pure."""

from __future__ import annotations

from typing import Any

from gpufarm.instances import parsed
from gpufarm.state import Deployment
from gpufarm.topology import Topology

# Names of endpoints in INFN Cloud's templates, where they differ from the name of the service.
_ENDPOINTS = {"jupyterhub": "jupyter", "single-node-jupyterhub": "jupyter", "mesosmaster": "mesos"}


def _account(users: Any) -> str | None:
    """The first account: a name, or a map as `tosca.datatypes.indigo.User` has it."""
    first = users[0] if isinstance(users, list) and users else users
    if isinstance(first, dict):
        first = first.get("os_user_name")
    return first if isinstance(first, str) and first else None


def outputs(deployment: Deployment, topology: Topology) -> dict[str, Any]:
    """Name the outputs of a deployment as INDIGO's and INFN Cloud's templates do.

    ``node_ip`` is the address of the first machine, ``<machine>_ip`` that of each; ``<service>_endpoint`` the
    URL that an operation returned as the attribute ``endpoint``; ``ssh_account`` the first account of
    ``os_users``, as the PaaS dashboard shows it. Inputs of the template with these names win.

    Args:
        deployment: as it is remembered.
        topology: its template.

    Returns:
        The template's outputs and these, by name; those without a value are left out.
    """
    found: dict[str, Any] = {}
    for node, machine in deployment.machines.items():
        found.setdefault("node_ip", machine["address"])
        found[f"{node}_ip"] = machine["address"]
    for name in topology.nodes:
        for step, done in deployment.steps.items():
            if parsed(step.rpartition(".")[0])[0] == name and done["attributes"].get("endpoint"):
                word = topology.nodes[name].type.rpartition(".")[2].lower()
                found.setdefault(f"{_ENDPOINTS.get(word, word)}_endpoint", done["attributes"]["endpoint"])
    account = _account(deployment.outputs.get("os_users"))
    if account:
        found["ssh_account"] = account
    return found | {name: value for name, value in deployment.outputs.items() if value is not None}
