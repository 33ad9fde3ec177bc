"""A Slurm cluster from its template: all parts know one another, and come in an order that works."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpufarm import inputs, instances, plan, template
from gpufarm.catalogue import Catalogue
from gpufarm.functions import Scope

TEMPLATE = Path(__file__).resolve().parents[3] / "tosca" / "templates" / "slurm_cluster.yaml"
ADA = {"os_user_name": "ada", "os_user_ssh_public_key": "ssh-ed25519 AAAA", "os_user_guid": 3001}


def steps(**given: Any) -> dict[str, plan.Step]:
    """The steps of a deployment in their order; addresses go to controller, login machine and nodes."""
    source, topology = template.read(TEMPLATE)
    known = inputs.complete(topology, {"users": [ADA], **given}, Catalogue(source).names("data_types"))
    made = instances.multiply(topology, instances.counts(topology, known, {}))
    machines = ["controller", "login", *made.groups["nodes"]]
    scope = Scope(made, known).on(
        {name: f"192.0.2.{number}" for number, name in enumerate(machines, start=1)}
    )
    hosts = {name: name for name, node in scope.topology.nodes.items() if node.is_machine}
    return {step.name: step for step in plan.steps(scope, hosts, frozenset(given))}


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_controller_knows_all_nodes_and_all_know_the_controller(nodes: int) -> None:
    made = steps(node_count=nodes)
    controller = made["slurm_controller.configure"].variables
    assert controller["slurm_controller_hosts"] == ["192.0.2.1"]
    assert controller["slurm_controller_accounting_host"] == "192.0.2.1"
    assert controller["slurm_controller_nodes"] == [f"192.0.2.{3 + index}" for index in range(nodes)]
    assert made["accounting.configure"].variables["slurm_accounting_controllers"] == ["192.0.2.1"]
    assert made["slurm_login.configure"].variables["slurm_login_controllers"] == ["192.0.2.1"]
    of_nodes = [
        made[f"{instances.named('slurm_node', index) if nodes > 1 else 'slurm_node'}.configure"]
        for index in range(1, nodes + 1)
    ]
    assert [step.variables["slurm_node_controllers"] for step in of_nodes] == [["192.0.2.1"]] * nodes


def test_parts_come_after_those_that_they_need() -> None:
    order = [name.partition(".")[0] for name in steps(node_count=2)]
    first = {name: order.index(name) for name in order}
    for one, other in (
        ("accounting", "slurm_controller"),
        (instances.named("slices", 2), "slurm_controller"),
        ("slurm_controller", instances.named("slurm_node", 1)),
        ("users_of_controller", "slurm_accounts"),
        ("slurm_controller", "slurm_accounts"),
        ("homes_of_login", "users_of_login"),
        ("slurm_controller", "slurm_login"),
    ):
        assert first[one] < first[other], (one, other)


def test_every_user_may_compute_unless_accounts_are_given() -> None:
    [account] = steps()["slurm_accounts.configure"].variables["slurm_accounts_accounts"]
    assert account == {"name": "users", "groups": ["gpufarm-users"]}
    given = [{"name": "physics", "users": ["ada"]}]
    made = steps(slurm_accounts=given)
    assert made["slurm_accounts.configure"].variables["slurm_accounts_accounts"] == given
