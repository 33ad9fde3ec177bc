# SPDX-License-Identifier: GPL-3.0-or-later
"""Every template, as other orchestrators read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TOSCA = ROOT / "tosca"
HERE = Path(__file__).parent
INDIGO = ROOT / "tests" / "unit" / "tosca" / "data" / "indigo" / "mesos.yaml"
TEMPLATES = sorted(path.name for path in (TOSCA / "templates").glob("*.yaml"))
# Inputs without a default in some template.
GIVEN = {
    "iam_url": "https://iam.example.org/",
    "owner": "ada",
    "docker_image": "registry.example.org/tool:1",
    "ssh_keys": "ssh-ed25519 AAAA ada",
    "jupyter_password": "correct horse battery",
    "app_name": "tool",
    "command": "run",
    "job_name": "tool",
    "schedule": "R1//PT1M",
    "users": [{"os_user_name": "ada", "os_user_ssh_public_key": "ssh-ed25519 AAAA ada"}],
}


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def has_machines(name: str) -> bool:
    """Whether a template asks for machines; without machines, an orchestrator of clouds has no work."""
    found = read(TOSCA / "templates" / name)["topology_template"]["node_templates"].values()
    return any(body["type"] == "tosca.nodes.gpufarm.Compute" for body in found)


def nodes(name: str) -> dict[str, Any]:
    """The nodes of a template that have operations."""
    found = read(TOSCA / "templates" / name)["topology_template"]["node_templates"]
    return {node: body for node, body in found.items() if body["type"] != "tosca.nodes.gpufarm.Compute"}


def role(node_type: str) -> str:
    """The role behind a node type."""
    base = read(TOSCA / "types" / "gpufarm_base.yaml")["node_types"]
    return str(base[node_type.replace("gpufarm.", "gpufarm.base.")]["metadata"]["role"])


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TOSCA 1.0 library as a release has it, but with its files on this disk instead of the web."""
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(TOSCA / "indigo", folder / "indigo")
    shutil.copytree(TOSCA / "playbooks", folder / "playbooks")
    galaxy = read(ROOT / "galaxy.yml")
    web = f"https://raw.githubusercontent.com/gpufarm/cluster/v{galaxy['version']}/tosca"
    for path in (folder / "indigo").rglob("*.yaml"):
        document = yaml.safe_load(path.read_text().replace(web, f"file://{folder}"))
        inputs = document.get("topology_template", {}).get("inputs", {})
        for name in GIVEN.keys() & inputs.keys():
            inputs[name]["default"] = GIVEN[name]
        path.write_text(yaml.safe_dump(document, sort_keys=False))
    return folder


@pytest.fixture(params=[name for name in TEMPLATES if has_machines(name)])
def contextualized(
    request: pytest.FixtureRequest, infrastructure_manager: Path, released: Path
) -> tuple[str, dict[str, Any]]:
    """A template and what Infrastructure Manager makes of it."""
    template = released / "indigo" / "templates" / request.param
    return request.param, contextualize(infrastructure_manager, released, template)


def contextualize(infrastructure_manager: Path, folder: Path, template: Path) -> dict[str, Any]:
    """Conversion of a template by Infrastructure Manager."""
    program = [infrastructure_manager / "python", HERE / "im_contextualize.py", template]
    # it keeps a cache of what it fetches where it is started
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_infrastructure_manager_runs_each_node_once_after_those_it_needs(
    contextualized: tuple[str, dict[str, Any]],
) -> None:
    name, found = contextualized
    wanted = nodes(name)
    order = {recipe.rsplit("_", 2)[0]: step for _system, recipe, step in found["steps"]}
    assert set(order) == set(wanted)
    for node, body in wanted.items():
        for requirement in body["requirements"]:
            (target,) = requirement.values()
            assert target not in order or order[target] < order[node], (node, target)


def test_infrastructure_manager_installs_the_collection_and_passes_every_variable(
    contextualized: tuple[str, dict[str, Any]],
) -> None:
    name, found = contextualized
    galaxy = read(ROOT / "galaxy.yml")
    collection = f"{galaxy['namespace']}.{galaxy['name']},{galaxy['version']}"
    assert all(f"ansible.collections.{collection}" in system for system in found["systems"].values())
    for node, body in nodes(name).items():
        (recipe,) = (text for key, text in found["recipes"].items() if key.rsplit("_", 2)[0] == node)
        (play,) = yaml.safe_load(recipe)
        assert play["tasks"][0]["ansible.builtin.include_role"]["name"] == role(body["type"])
        assert None not in play["vars"].values()
        assert set(body.get("properties", {})) <= set(play["vars"])


def test_infrastructure_manager_knows_where_the_service_is(
    contextualized: tuple[str, dict[str, Any]],
) -> None:
    _name, found = contextualized
    services = {f"{service}_endpoint" for service in ("jupyter", "apps", "mesos", "marathon", "chronos")}
    told = {"node_ip", "node_ips", "agent_ips", "login_ip", "controller_ip"} | services
    addresses = [text for key, text in found["outputs"].items() if key in told]
    assert addresses
    assert all("IM_NODE_PUBLIC_IP" in text for text in addresses), addresses


def test_infrastructure_manager_is_asked_for_an_image_that_there_is(
    contextualized: tuple[str, dict[str, Any]],
) -> None:
    name, found = contextualized
    chosen = "os_distribution" in read(TOSCA / "templates" / name)["topology_template"]["inputs"]
    for system in found["systems"].values():
        words = dict(re.findall(r"disk\.0\.os\.(flavour|version) = '([^']*)'", system))
        assert words == ({"flavour": "debian", "version": "12"} if chosen else {}), system


@pytest.mark.parametrize("name", [name for name in TEMPLATES if not has_machines(name)])
def test_infrastructure_manager_refuses_what_it_would_make_nothing_of(
    infrastructure_manager: Path, released: Path, name: str
) -> None:
    document = read(TOSCA / "templates" / name) | {
        "tosca_definitions_version": "tosca_simple_yaml_1_0",
        "imports": [{"gpufarm_types": f"file://{released}/indigo/gpufarm_types.yaml"}],
    }
    (kind,) = {body["type"] for body in nodes(name).values()}
    template = released / name
    template.write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(ValueError, match=f'Type "{kind}" is not a valid type'):
        contextualize(infrastructure_manager, released, template)


def test_infrastructure_manager_runs_our_roles_under_the_names_of_indigo(
    infrastructure_manager: Path, released: Path
) -> None:
    document = read(INDIGO)
    document["imports"] = [{"indigo_types": f"file://{released}/indigo/indigo_types.yaml"}]
    # tosca-parser stumbles over the first entry of an empty list
    del document["topology_template"]["outputs"]["os_users"]
    template = released / "mesos.yaml"
    template.write_text(yaml.safe_dump(document, sort_keys=False))
    found = contextualize(infrastructure_manager, released, template)
    plays = {key.rsplit("_", 1)[0]: yaml.safe_load(text)[0] for key, text in found["recipes"].items()}
    server = "{{ groups['mesos_master_server']|map('extract', hostvars,'IM_NODE_PRIVATE_IP')|list"
    slave = plays["mesos_slave_mesos_slave_server"]
    assert slave["vars"]["mesos_agent_masters"].startswith(server)
    assert slave["tasks"][-1]["ansible.builtin.include_role"]["name"] == "gpufarm.cluster.mesos_agent"
    master = plays["mesos_master_mesos_master_server"]
    assert (
        master["vars"]["marathon_http_password"] == "a-long-one" and master["vars"]["indigo_chronos"] is True
    )
    assert plays["mesos_lb_server"]["vars"] == {"user_accounts_users": []}
    assert all(None not in play["vars"].values() for play in plays.values())


@pytest.mark.parametrize("name", TEMPLATES)
def test_puccini_compiles(puccini: Path, name: str) -> None:
    template = TOSCA / "templates" / name
    inputs = {key: GIVEN[key] for key in GIVEN.keys() & read(template)["topology_template"]["inputs"].keys()}
    done = subprocess.run(
        [puccini / "python", HERE / "puccini_compile.py", template, json.dumps(inputs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == []
