"""A template and a pool as an inventory, as Ansible reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import DATA, HERE, Site
from gpufarm import ansible

PAIR = DATA / "pair.yaml"


@pytest.fixture
def two(site: Site) -> Site:
    """A pool of two machines; both are this one, under two addresses."""
    site.machines(one={**HERE, "ansible_host": "127.0.0.1"}, two={**HERE, "ansible_host": "127.0.0.2"})
    return site


def ansible_inventory(site: Site, source: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["ansible-inventory", "-i", str(source), "--list"],
        env=site.environment()
        | ansible.environment()
        | {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1"}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def of_template(site: Site, **environment: str) -> subprocess.CompletedProcess[str]:
    """The template itself as source."""
    return ansible_inventory(
        site,
        PAIR,
        ANSIBLE_INVENTORY_ENABLED="gpufarm.cluster.tosca",
        GPUFARM_POOL=str(site.pool),
        GPUFARM_INPUT_FOLDER=str(site.notes),
        **environment,
    )


def of_file(site: Site, **options: Any) -> subprocess.CompletedProcess[str]:
    """A file of its own as source."""
    path = site.root / "pair.gpufarm.yaml"
    path.write_text(yaml.safe_dump({"plugin": "gpufarm.cluster.tosca", "template": str(PAIR), **options}))
    return ansible_inventory(site, path)


def data(text: str) -> dict[str, str]:
    """A text in which Ansible evaluates nothing, as it lists it."""
    return {"__ansible_unsafe": text}


def test_nodes_are_groups_and_properties_are_variables(two: Site) -> None:
    two.pool.write_text(two.pool.read_text().replace("127.0.0.2", "'{{ 1 }}27.0.0.2'"))
    found = json.loads(of_template(two).stdout)
    left, right = found["left"]["hosts"], found["right"]["hosts"]
    assert sorted(left + right) == ["one", "two"]
    assert found["base"]["hosts"] == left
    assert found["top"]["hosts"] == right
    assert sorted(found["notebooks"]["children"]) == ["base", "top"]
    variables = found["_meta"]["hostvars"]
    assert variables[left[0]]["label"] == data("base")
    assert variables[left[0]]["folder"] == data(str(two.notes))
    assert variables[left[0]]["text"] == data(variables[right[0]]["ansible_host"])
    assert all("seconds" not in entry for entry in variables.values()), "left to the pool and the role"
    assert variables["two"]["ansible_host"] == "{{ 1 }}27.0.0.2"
    assert not (two.state / "pair.json").exists()


def test_a_node_may_name_another_group_than_its_type(two: Site) -> None:
    own = two.root / "own.yaml"
    text = PAIR.read_text().replace("- types", f"- {DATA}/types")
    own.write_text(text.replace("  top:\n", "  top:\n      metadata: {inventory_group: others}\n"))
    found = json.loads(
        of_file(two, template=str(own), inputs={"folder": str(two.notes)}, pool=str(two.pool)).stdout
    )
    assert found["notebooks"]["children"] == ["base"]
    assert found["others"]["children"] == ["top"]


@pytest.mark.parametrize("group", ["'{{ 1 }}'", "all:children", "[a]", "7"])
def test_a_group_that_no_inventory_can_have_is_refused(site: Site, group: str) -> None:
    own = site.root / "own.yaml"
    text = PAIR.read_text().replace("- types", f"- {DATA}/types")
    own.write_text(text.replace("  top:\n", f"  top:\n      metadata: {{inventory_group: {group}}}\n"))
    answer = site.gpufarm("validate", own)
    assert answer.status == 2
    assert (
        "inventory_group of node top names no group of an inventory; write letters, digits and _"
        in answer.error
    )


def test_a_file_of_its_own_names_template_pool_and_inputs(two: Site) -> None:
    found = json.loads(of_file(two, pool="hosts.yml", inputs={"folder": str(two.notes)}).stdout)
    assert found["notebooks"]["children"]


def test_a_deployment_keeps_its_machines(two: Site) -> None:
    done = two.gpufarm("deploy", PAIR, "--pool", two.pool, "--input", f"folder={two.notes}", "--name", "mine")
    assert done.status == 0, done.error
    placed = {node: entry["host"] for node, entry in two.remembered("mine")["machines"].items()}
    two.pool.write_text(two.pool.read_text().replace("127.0.0.2", "127.0.0.3"))
    found = json.loads(of_file(two, deployment="mine").stdout)
    assert {node: found[node]["hosts"] for node in placed} == {node: [host] for node, host in placed.items()}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"inputs": {"foldr": "/tmp"}}, "the template pair.yaml has no input foldr; did you mean folder?"),
        ({"pool": "hosts.yml"}, "needs the input folder"),
        ({"inputs": {"folder": "/tmp"}}, "--pool is missing"),
        ({"pool": "nowhere", "inputs": {"folder": "/tmp"}}, "there is no such inventory"),
        ({"template": "types.yaml"}, "cannot be read"),
    ],
)
def test_a_wrong_source_is_refused_with_a_sentence(two: Site, options: dict[str, Any], sentence: str) -> None:
    answer = of_file(two, **options)
    assert answer.returncode != 0
    assert sentence in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr


def test_nodes_that_disagree_on_one_machine_are_refused(site: Site) -> None:
    path = site.root / "farm.gpufarm.yaml"
    options = {"plugin": "gpufarm.cluster.tosca", "template": str(DATA / "farm.yaml"), "pool": "hosts.yml"}
    site.machines(**{name: {**HERE, "ansible_host": f"127.0.0.{name[-1]}"} for name in ("m1", "m2", "m3")})
    path.write_text(yaml.safe_dump({**options, "inputs": {"folder": str(site.notes)}}))
    answer = ansible_inventory(site, path)
    assert answer.returncode != 0
    assert "want different values of label" in " ".join(answer.stderr.split())
