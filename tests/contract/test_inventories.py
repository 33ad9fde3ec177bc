"""Inventories to copy: their variables are options of roles, with values that the roles take."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.manager import VariableManager
from ansible_collections.gpufarm.cluster.plugins.filter.plan import MODULES, plan
from harness.specs import defaults, options, roles

ROOT = Path(__file__).resolve().parents[2]
INVENTORIES = ("example", "ibisco")
# Settings with which the roles ask nothing but the inventory.
PURE = ("benchmarks", "fabric", "mpi", "scratch", "shared_home", "staging")


@cache
def known(inventory: str) -> tuple[InventoryManager, VariableManager, DataLoader]:
    loader = DataLoader()
    manager = InventoryManager(loader, [str(ROOT / "inventories" / inventory)])
    return manager, VariableManager(loader, manager), loader


def settings(inventory: str, host: str, role: str) -> dict[str, Any]:
    """Return the variables of a role that a machine has."""
    manager, variables, loader = known(inventory)
    found = variables.get_vars(host=manager.get_host(host))
    own = {
        name: value for name, value in found.items() if name.startswith(f"{role}_") and name in options(role)
    }
    return Templar(loader, found).template(own)


def hosts(inventory: str) -> list[str]:
    return sorted(known(inventory)[0].hosts)


def groups_of_playbooks() -> Iterator[str]:
    for path in (ROOT / "playbooks").glob("*.yml"):
        for play in yaml.safe_load(path.read_text()):
            yield from str(play.get("hosts", "")).partition("[")[0].split(":")


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_groups_are_those_of_playbooks_or_parts_of_them(inventory: str) -> None:
    manager, used = known(inventory)[0], set(groups_of_playbooks())
    for name, group in manager.groups.items():
        above = {name, *(one.name for one in group.get_ancestors())} - {"all", "ungrouped"}
        assert name in ("all", "ungrouped") or above & used, name


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_variables_are_options_of_roles(inventory: str) -> None:
    every = {name for role in roles() for name in options(role)}
    for path in (ROOT / "inventories" / inventory).rglob("*.yml"):
        if path.name != "hosts.yml":
            names = yaml.safe_load(path.read_text()) or {}
            own = [name for name in names if not name.startswith(("ansible_", "site_"))]
            assert {*own} <= every, path


@pytest.mark.parametrize("role", roles())
@pytest.mark.parametrize("inventory", INVENTORIES)
def test_values_are_those_that_a_role_takes(inventory: str, role: str) -> None:
    for host in hosts(inventory):
        given = settings(inventory, host, role)
        spec = {name: options(role)[name] for name in given}
        found = ArgumentSpecValidator(spec).validate(given)
        assert not found.error_messages, (host, found.error_messages)


def test_the_large_site_gives_each_machine_its_part() -> None:
    manager = known("ibisco")[0]
    nodes = [host.name for host in manager.groups["slurm_nodes"].get_hosts()]
    assert len(nodes) == 32 and len(manager.groups["lustre_servers"].get_hosts()) == 4
    partitions = {
        one["name"]: one
        for one in settings("ibisco", "ctl1", "slurm_controller")["slurm_controller_partitions"]
    }
    parts = [partitions[name]["nodes"] for name in ("sub1", "sub2", "sub3")]
    assert [len(part) for part in parts] == [21, 4, 7] and sorted(chain(*parts)) == sorted(nodes)
    removing = [host for host in hosts("ibisco") if settings("ibisco", host, "scratch").get("scratch_remove")]
    assert removing == ["login1"]


def links(number: int) -> list[dict[str, Any]]:
    """Addresses of a node of the large site on Ethernet and on both networks of InfiniBand."""
    return [
        {"ifname": f"{name}{number}", "addr_info": [{"local": f"10.{network}.0.{number}"}]}
        for name, network in (("eth", 2), ("ib", 1), ("data", 0))
    ]


def infiniband(number: int) -> dict[str, Any]:
    """Result of `fabric_info` on a node of the large site."""
    found = {link["ifname"]: link["addr_info"][0]["local"] for link in links(number)}
    names = [name for name in found if not name.startswith("eth")]
    port = {"number": 1, "link_layer": "InfiniBand", "state": "ACTIVE", "rate": 100.0}
    about = {"pci": "", "parent": "", "firmware": "", "guid": ""}
    seen = {"physical_state": "LinkUp", "errors": {}}
    return {
        "name": f"gpu{number}",
        "gpudirect": {},
        "adapters": [
            {"name": f"mlx5_{place}", **about, "ports": [{**port, **seen, "interface": name}]}
            for place, name in enumerate(names)
        ],
        "interfaces": [
            {"name": name, "pci": "", "mode": "", "addresses": [f"{ip}/16"]} for name, ip in found.items()
        ],
    }


@pytest.mark.parametrize("role", PURE)
def test_roles_of_the_large_site_find_no_fault(role: str) -> None:
    assert role in MODULES
    given = {**defaults(role), **settings("ibisco", "gpu32", role)}
    plain = {name.removeprefix(f"{role}_"): value for name, value in given.items()}
    mounts = "1 0 8:2 / / rw - ext4 /dev/sda2 rw\n2 1 0:9 / /scratch rw - lustre s:/scratch rw\n"
    facts: dict[str, dict[str, Any]] = {
        "benchmarks": {
            "name": "gpu32",
            "links": {"gpu32": links(32), "gpu01": links(1)},
            "adapters": {"gpu32": infiniband(32)["adapters"], "gpu01": infiniband(1)["adapters"]},
        },
        "fabric": {"machine": infiniband(32)},
        "mpi": {"machine": {"name": "gpu32", "links": links(32), "rails": ""}},
        "shared_home": {},
        "scratch": {"mountinfo": mounts},
        "staging": {"mountinfo": f"{mounts}3 1 0:10 / /home rw - lustre s:/home rw\n"},
    }
    planned = plan(plain, role, **facts[role])
    assert planned["problems"] == []
    if role == "benchmarks":
        for kind in ("link", "rdma"):
            ends = [way["to"] for way in planned["links"] if way["kind"] == kind]
            assert [one["peer"] for one in ends] == ["gpu01", "gpu01"], kind
            assert [one["address"] for one in ends] == ["10.1.0.1", "10.0.0.1"], kind


def test_the_controllers_of_the_large_site_find_no_fault() -> None:
    given = {**defaults("slurm_controller"), **settings("ibisco", "ctl1", "slurm_controller")}
    plain = {name.removeprefix("slurm_controller_"): value for name, value in given.items()}
    controllers = [host.name for host in known("ibisco")[0].groups["slurm_controllers"].get_hosts()]
    nodes = [host.name for host in known("ibisco")[0].groups["slurm_nodes"].get_hosts()]
    named = {"hosts": controllers, "controllers": controllers, "nodes": nodes, "members": nodes}
    addresses = {name: name for name in [*controllers, *nodes]}
    assert plan({**plain, **named, "addresses": addresses}, "slurm_controller")["problems"] == []
