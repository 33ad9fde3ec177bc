"""`gpufarm uniform`: machines of a deployment or an inventory that ought to be equal."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
import yaml
from deployer_site import DATA, HERE, Site

FARM = DATA / "farm.yaml"


def inventory(site: Site, **groups: list[str]) -> None:
    """An inventory whose machines are this one; `odd` has no program, and `dead` has no Python."""
    empty, python = site.root / "empty", site.root / "python"
    empty.mkdir()
    python.write_text(f'#!/bin/sh\nPATH={empty} exec {HERE["ansible_python_interpreter"]} "$@"\n')
    python.chmod(0o755)
    pythons = {"odd": str(python), "dead": "/nowhere"}
    hosts = {
        host: HERE
        | {"ansible_become": False}
        | ({"ansible_python_interpreter": pythons[host]} if host in pythons else {})
        for members in groups.values()
        for host in members
    }
    children = {name: {"hosts": dict.fromkeys(members)} for name, members in groups.items()}
    site.pool.write_text(yaml.safe_dump({"all": {"hosts": hosts, "children": children}}, sort_keys=False))


def test_the_odd_machine_of_a_group_is_named(site: Site) -> None:
    inventory(site, nodes=["n1", "n2", "odd"], others=["o1"])
    folder = site.root / "{{ 6 * 7 }}"
    told = site.gpufarm("uniform", "--pool", site.pool, "--group", "nodes", "--folder", folder)
    assert told.status == 5, told.error
    first, _head, *rows = told.output.splitlines()
    assert first.startswith("nodes: 3 machines differ in ")
    assert {row.split()[2] for row in rows} == {"odd"} and rows[0].split()[1].startswith("package.")
    kept = folder / "uniform.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert {*json.loads(kept.read_text())["properties"]} == {"n1", "n2", "odd"}


def test_machines_that_are_alike_are_said_to_be(site: Site) -> None:
    inventory(site, nodes=["n1", "n2"], others=["o1", "o2"])
    told = site.gpufarm("uniform", "--pool", site.pool, "--group", "nodes", "--group", "others")
    assert told.status == 0, told.error
    assert told.output.splitlines() == ["nodes: 2 machines are alike", "others: 2 machines are alike"]


def test_a_machine_that_does_not_answer_is_named_and_the_others_are_compared(site: Site) -> None:
    inventory(site, nodes=["n1", "n2", "dead"])
    told = site.gpufarm("uniform", "--pool", site.pool, "--json")
    assert told.status == 1 and "dead: " in told.error and "/nowhere" in told.error
    found = json.loads(told.output)
    assert found["summary"] == ["all: 2 machines are alike"] and [*found["silent"]] == ["dead"]


def test_the_instances_of_a_node_of_a_deployment_are_compared(site: Site) -> None:
    inventory(site, machines=["n1", "n2", "n3"])
    deployed = site.gpufarm("deploy", FARM, "--pool", site.pool, "--input", f"folder={site.notes}")
    assert deployed.status == 0, deployed.error
    told = site.gpufarm("uniform", "farm")
    assert told.status == 0, told.error
    assert "worker: 2 machines are alike" in told.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "name a deployment, or an inventory"),
        (["farm", "--pool", "hosts.yml"], "name a deployment, or an inventory"),
        (["farm", "--group", "nodes"], "name a deployment, or an inventory"),
        (["farm"], "there is no deployment farm"),
        (["--pool", "/nowhere"], "there is no such inventory"),
    ],
)
def test_what_cannot_be_compared_is_refused(site: Site, words: list[str], reason: str) -> None:
    told = site.gpufarm("uniform", *words)
    assert told.status == 2 and reason in told.error


def test_a_group_without_machines_is_refused_with_those_that_have_some(site: Site) -> None:
    inventory(site, nodes=["n1"])
    told = site.gpufarm("uniform", "--pool", site.pool, "--group", "node")
    assert told.status == 2 and "has no machine in a group node; there are: all, nodes" in told.error
