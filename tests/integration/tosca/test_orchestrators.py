# SPDX-License-Identifier: GPL-3.0-or-later
"""Every template, as other orchestrators read it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TOSCA = ROOT / "tosca"
HERE = Path(__file__).parent
TEMPLATES = sorted(path.name for path in (TOSCA / "templates").glob("*.yaml"))
# What has no default in some template.
GIVEN = {"iam_url": "https://iam.example.org/"}


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


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


@pytest.fixture(params=TEMPLATES)
def contextualized(
    request: pytest.FixtureRequest, infrastructure_manager: Path, released: Path
) -> tuple[str, dict[str, Any]]:
    """A template and what Infrastructure Manager makes of it."""
    template = released / "indigo" / "templates" / request.param
    program = [infrastructure_manager / "python", HERE / "im_contextualize.py", template]
    # it keeps a cache of what it fetches where it is started
    done = subprocess.run(program, cwd=released, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return request.param, json.loads(done.stdout)


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
    addresses = [text for key, text in found["outputs"].items() if key in ("node_ip", "jupyter_endpoint")]
    assert addresses
    assert all("IM_NODE_PUBLIC_IP" in text for text in addresses), addresses


@pytest.mark.parametrize("name", TEMPLATES)
def test_puccini_compiles(puccini: Path, name: str) -> None:
    template = TOSCA / "templates" / name
    inputs = {key: GIVEN[key] for key in GIVEN.keys() & read(template)["topology_template"]["inputs"].keys()}
    script = "import json, sys, puccini.tosca; puccini.tosca.compile(sys.argv[1], json.loads(sys.argv[2]))"
    done = subprocess.run(
        [puccini / "python", "-c", script, template, json.dumps(inputs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
