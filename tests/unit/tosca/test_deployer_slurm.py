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

TEMPLATES = Path(__file__).resolve().parents[3] / "tosca" / "templates"
ADA = {"os_user_name": "ada", "os_user_ssh_public_key": "ssh-ed25519 AAAA", "os_user_guid": 3001}


def steps(name: str = "slurm_cluster", **given: Any) -> dict[str, plan.Step]:
    """The steps of a deployment in their order; addresses go to controller, login machine and nodes."""
    source, topology = template.read(TEMPLATES / f"{name}.yaml")
    known = inputs.complete(topology, {"users": [ADA], **given}, Catalogue(source).names("data_types"))
    made = instances.multiply(topology, instances.counts(topology, known, {}))
    groups = ["controller", "login", "nodes", "sub1", "sub2", "sub3"]
    machines = [machine for group in groups for machine in made.groups.get(group, ())]
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
        # A removal goes the other way; a node with jobs refuses, and people go on working with them.
        ("slurm_login", "slurm_accounts"),
        ("slurm_accounts", instances.named("slurm_node", 1)),
    ):
        assert first[one] < first[other], (one, other)


def test_every_user_may_compute_unless_accounts_are_given() -> None:
    [account] = steps()["slurm_accounts.configure"].variables["slurm_accounts_accounts"]
    assert account == {"name": "users", "groups": ["gpufarm-users"]}
    given = [{"name": "physics", "users": ["ada"]}]
    made = steps(slurm_accounts=given)
    assert made["slurm_accounts.configure"].variables["slurm_accounts_accounts"] == given


DIRECTORY = {
    "directory_enabled": True,
    "directory_servers": ["ldaps://ldap.example.org"],
    "directory_user_base": "ou=people,dc=example,dc=org",
    "directory_group_base": "ou=groups,dc=example,dc=org",
}


@pytest.mark.parametrize("name", ["slurm_cluster", "hpc_cluster"])
def test_users_of_a_directory_are_on_all_machines_if_that_is_wanted(name: str) -> None:
    made = steps(name, users=[], **DIRECTORY)
    machines = {step.host for step in made.values()}
    of_directory = {step.host: step.variables for step in made.values() if "sssd_servers" in step.variables}
    assert of_directory.keys() == machines
    assert all(given["sssd_user_base"] == "ou=people,dc=example,dc=org" for given in of_directory.values())
    order = list(made)
    for machine in ("controller", "login"):
        of_users = order.index(f"users_of_{machine}.configure")
        assert order.index(f"directory_of_{machine}.configure") < of_users
    assert {step.off for step in steps(name).values() if "sssd_enabled" in step.variables} == {True}


def test_one_hub_starts_notebooks_on_all_nodes_if_that_is_wanted() -> None:
    wanted = {"enable_notebooks": True, "jupyter_login": "pam", "jupyter_pam_groups": ["gpufarm-users"]}
    made = steps(node_count=2, **wanted)
    hub = made["hub.configure"]
    assert (hub.host, hub.variables["jupyterhub_spawner"]) == ("login", "slurm")
    assert hub.variables["jupyterhub_slurm_hub_host"] == "192.0.2.2"
    assert hub.variables["jupyterhub_pam_groups"] == ["gpufarm-users"]
    order = list(made)
    of_nodes = {
        name: [f"{instances.named(name, number)}.configure" for number in (1, 2)]
        for name in ("environments", "notebooks", "slurm_node", "users_of_nodes")
    }
    assert {made[name].host for names in of_nodes.values() for name in names} == {
        instances.named("nodes", number) for number in (1, 2)
    }
    # The controller reads from a node whether notebooks can run there.
    assert max(map(order.index, of_nodes["notebooks"])) < order.index("slurm_controller.configure")
    before = [*of_nodes["slurm_node"], "slurm_login.configure", "users_of_login.configure"]
    assert max(map(order.index, before)) < order.index("hub.configure")


def test_there_are_no_notebooks_by_default() -> None:
    off = {step.name.partition(".")[0] for step in steps().values() if step.off}
    assert off >= {"environments", "notebooks", "hub"}


@pytest.mark.parametrize("name", ["slurm_cluster", "hpc_cluster"])
def test_the_login_machine_offers_jobs_by_http_if_that_is_wanted(name: str) -> None:
    made = steps(name, enable_slurm_rest=True, slurm_rest_public_host="jobs.example.org")
    rest, order = made["rest.configure"], list(made)
    assert (rest.host, rest.off) == ("login", False)
    assert rest.variables == {
        "slurm_rest_controllers": ["192.0.2.1"],
        "slurm_rest_enabled": True,
        "slurm_rest_public_host": "jobs.example.org",
    }
    # Users get tokens and accounts before.
    assert made["accounting.configure"].variables["slurm_accounting_tokens"] is True
    assert made["slurm_controller.configure"].variables["slurm_controller_tokens"] is True
    for step in ("slurm_controller", "slurm_accounts", "slurm_login"):
        assert order.index(f"{step}.configure") < order.index("rest.configure")


@pytest.mark.parametrize("name", ["slurm_cluster", "hpc_cluster"])
def test_there_are_no_tokens_by_default(name: str) -> None:
    made = steps(name)
    assert made["rest.configure"].off
    given = {name for step in made.values() for name in step.variables}
    assert given.isdisjoint({"slurm_accounting_tokens", "slurm_controller_tokens"})


@pytest.mark.parametrize("name", ["slurm_cluster", "hpc_cluster"])
def test_that_there_are_tokens_is_no_secret(name: str) -> None:
    _source, topology = template.read(TEMPLATES / f"{name}.yaml")
    assert not topology.inputs["enable_slurm_rest"].secret
    made = steps(name, enable_slurm_rest=True)
    assert not [step.name for step in made.values() if any("slurm" in one for one in step.secrets)]


@pytest.fixture(scope="module")
def hpc() -> dict[str, plan.Step]:
    return steps("hpc_cluster", scratch_path="/work/areas", mpi_networks=["10.1.0.0/16"], sub1_count=2)


def test_each_kind_of_machine_is_a_partition_of_the_cluster_for_mpi(hpc: dict[str, plan.Step]) -> None:
    known = hpc["slurm_controller.configure"].variables
    assert known["slurm_controller_partitions"] == [
        {"name": "cluster", "default": True},
        {"name": "sub1", "nodes": ["192.0.2.3", "192.0.2.4"]},
        {"name": "sub2", "nodes": ["192.0.2.5"]},
        {"name": "sub3", "nodes": ["192.0.2.6"]},
    ]
    assert "slurm_controller_nodes" not in known, "the partitions name them"


def test_all_machines_of_users_have_networks_and_areas_and_one_removes_old_files(
    hpc: dict[str, plan.Step],
) -> None:
    machines = ["login", instances.named("sub1", 1), instances.named("sub1", 2), "sub2", "sub3"]
    of_mpi = {step.host: step.variables for step in hpc.values() if "mpi_process_networks" in step.variables}
    assert {host: known["mpi_process_networks"] for host, known in of_mpi.items()} == {
        machine: ["10.1.0.0/16"] for machine in machines
    }
    of_areas = {step.host: step.variables for step in hpc.values() if "scratch_path" in step.variables}
    assert {host: known.get("scratch_remove", True) for host, known in of_areas.items()} == {
        machine: machine == "login" for machine in machines
    }


def test_homes_are_on_the_login_machine_for_all_nodes() -> None:
    made = steps(node_count=2)
    of_login = made["homes_of_login.configure"].variables
    assert of_login["shared_home_kind"] == "cluster"
    assert of_login["shared_home_server"] == "192.0.2.2"
    assert of_login["shared_home_clients"] == [["192.0.2.3", "192.0.2.4"]]
    order = list(made)
    for number in (1, 2):
        name = f"{instances.named('homes_of_nodes', number)}.configure"
        # A new node changes nothing on the others.
        assert of_login == {**made[name].variables, "shared_home_clients": of_login["shared_home_clients"]}
        assert order.index("homes_of_login.configure") < order.index(name)


def test_homes_and_areas_come_after_the_file_systems_that_they_are_on(hpc: dict[str, plan.Step]) -> None:
    order = list(hpc)
    for machine in ("login", "sub2"):
        lustre = order.index(f"lustre_of_{machine}.configure")
        homes = order.index(f"homes_of_{machine}.configure")
        assert lustre < homes < order.index(f"users_of_{machine}.configure")
        assert lustre < order.index(f"scratch_of_{machine}.configure")


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("slurm_cluster", [["192.0.2.3", "192.0.2.4"]]),
        ("hpc_cluster", [["192.0.2.3"], ["192.0.2.4"], ["192.0.2.5"]]),
    ],
)
def test_the_controller_measures_all_machines_if_that_is_wanted(name: str, nodes: list[list[str]]) -> None:
    made = steps(name, enable_monitoring=True)
    measured = {step.host: step.variables for step in made.values() if step.node.startswith("monitoring")}
    assert measured.keys() == {step.host for step in made.values()}
    server = measured.pop("controller")
    assert server["monitoring_machines"] == [["192.0.2.2"], *nodes]
    assert "monitoring_parts" not in server and "monitoring_listen_address" not in server
    for of_node in measured.values():
        assert of_node["monitoring_parts"] == ["node"]
        assert of_node["monitoring_servers"] == ["192.0.2.1"]
        assert of_node["monitoring_listen_address"] == "0.0.0.0"
    order = list(made)
    first = order.index("monitoring.configure")
    assert order.index("slurm_controller.configure") < first
    if "hub.configure" in made:
        assert server["monitoring_hub_machines"] == [["192.0.2.2"]]
        assert order.index("hub.configure") < first
    others = [step for step in order if step.startswith("monitoring_of_")]
    assert all(order.index(step) > first for step in others)
    for machine in ("nodes", "sub1", "sub2", "sub3"):
        for step in others:
            if step.startswith(f"monitoring_of_{machine}"):
                needs = "slices" if machine == "nodes" else f"driver_of_{machine}"
                assert order.index(step.replace(f"monitoring_of_{machine}", needs)) < order.index(step)


@pytest.mark.parametrize("name", ["slurm_cluster", "hpc_cluster"])
def test_an_inventory_of_the_template_has_one_server_of_monitoring(name: str) -> None:
    _source, topology = template.read(TEMPLATES / f"{name}.yaml")
    groups = {
        node.name: node.inventory_group
        for node in topology.nodes.values()
        if node.type.endswith(".Monitoring")
    }
    assert groups.pop("monitoring") == "monitoring_servers"
    assert groups and set(groups.values()) == {"monitoring_nodes"}


@pytest.mark.parametrize("name", ["slurm_cluster", "hpc_cluster"])
def test_nothing_is_measured_by_default(name: str) -> None:
    of_monitoring = [step for step in steps(name).values() if step.node.startswith("monitoring")]
    assert of_monitoring and all(step.off for step in of_monitoring)
