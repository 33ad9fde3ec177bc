"""Inputs of templates follow from properties; sources say what differs, and nothing else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tosca_inputs import completed_inputs, plain

ROOT = Path(__file__).resolve().parents[3]
PORT = {
    "type": "integer",
    "description": "Port of farm_host.",
    "default": 80,
    "constraints": [{"in_range": [1, 9]}],
}
TYPES: dict[str, Any] = {
    "capability_types": {
        "cap.Size": {
            "derived_from": "tosca.capabilities.Root",
            "properties": {"count": {"type": "integer", "description": "How many.", "required": False}},
        }
    },
    "node_types": {
        "example.base.Farm": {
            "derived_from": "tosca.nodes.Root",
            "metadata": {"role": "gpufarm.cluster.farm"},
            "properties": {
                "farm_port": PORT,
                "farm_host": {"type": "string", "description": "Host; farm_state says whether it is there."},
                "farm_words": {"type": "list", "description": "Words.", "entry_schema": {"type": "string"}},
            },
            "capabilities": {"size": {"type": "cap.Size"}},
        },
        "example.base.Barn": {
            "derived_from": "tosca.nodes.Root",
            "properties": {"barn_port": {"type": "integer", "description": "Port of the barn."}},
        },
    },
}
HOST = {"description": "Host."}


def topology(inputs: dict[str, Any], **handed: str) -> dict[str, Any]:
    """A template that hands inputs to properties, by their names."""
    nodes: dict[str, Any] = {}
    for key, name in handed.items():
        kind = key.partition("_")[0].capitalize()
        node = nodes.setdefault(kind, {"type": f"example.{kind}", "properties": {}})
        node["properties"][key] = {"get_input": name}
    return {"inputs": inputs, "node_templates": nodes}


def test_an_input_is_what_its_property_is() -> None:
    asked = topology(
        {"words": None, "port": None, "host": HOST}, farm_words="words", farm_port="port", farm_host="host"
    )
    found = completed_inputs(asked, TYPES, {})
    assert found["words"] == TYPES["node_types"]["example.base.Farm"]["properties"]["farm_words"]
    assert found["port"] == {**PORT, "description": "Port of host."}
    assert found["host"] == {"type": "string", "description": "Host."}


def test_the_template_wins_over_what_is_said_for_all() -> None:
    said = {"farm_port": {"description": "The port.", "default": 8, "form": {"type": "text", "rows": 1}}}
    own = {"default": 9, "display_name": "Port", "form": {"rows": 2}}
    found = completed_inputs(topology({"port": own}, farm_port="port"), TYPES, said)
    assert found["port"] == {
        **PORT,
        "description": "The port.",
        "default": 9,
        "display_name": "Port",
        "form": {"type": "text", "rows": 2},
    }


def test_the_dashboard_gets_no_double_quotes_and_no_backslashes() -> None:
    schema = {
        "type": "string",
        "description": 'Such as "x".',
        "constraints": [{"pattern": "\\d+"}, {"min_length": 1}, {"pattern": "[a-z]*"}],
    }
    assert plain(schema) == {
        "type": "string",
        "description": "Such as 'x'.",
        "constraints": [{"min_length": 1}, {"pattern": "[a-z]*"}],
    }
    assert "constraints" not in plain({"type": "string", "constraints": [{"pattern": '"'}]})


def test_what_is_required_has_no_default() -> None:
    own = {"required": True, "description": "Port."}
    found = completed_inputs(topology({"port": own}, farm_port="port"), TYPES, {})
    assert "default" not in found["port"] and "required" not in found["port"]


def test_properties_of_capabilities_are_found() -> None:
    node = {"type": "example.Farm", "capabilities": {"size": {"properties": {"count": {"get_input": "n"}}}}}
    asked = {"inputs": {"n": {"default": 1}}, "node_templates": {"farm": node}}
    found = completed_inputs(asked, TYPES, {"size.count": {"display_name": "Number"}})
    assert found["n"] == {
        "type": "integer",
        "description": "How many.",
        "default": 1,
        "display_name": "Number",
    }


def test_the_source_says_which_of_several_properties_an_input_is() -> None:
    asked = topology({"port": {"property": "barn_port"}}, farm_port="port", barn_port="port")
    assert completed_inputs(asked, TYPES, {})["port"] == {
        "type": "integer",
        "description": "Port of the barn.",
    }


@pytest.mark.parametrize(
    ("inputs", "handed", "problem"),
    [
        ({"port": None}, {"farm_port": "port", "barn_port": "port"}, "farm_port, barn_port, which differ"),
        (
            {"port": {"property": "farm_words"}},
            {"farm_port": "port"},
            "not handed to the property farm_words",
        ),
        ({"port": {"property": "farm_port", **HOST}}, {"farm_port": "port"}, "leave out `property`"),
        ({"port": {**HOST, "default": 80}}, {"farm_port": "port"}, "default follows from the property"),
        ({"port": None}, {"farm_port": "port"}, "names farm_host, which is no input"),
        ({"host": None}, {"farm_host": "host"}, "names farm_state, which is no input"),
        ({"other": HOST}, {}, "other is handed to no property"),
    ],
)
def test_a_source_says_what_differs_and_nothing_else(
    inputs: dict[str, Any], handed: dict[str, str], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        completed_inputs(topology(inputs, **handed), TYPES, {})


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the TOSCA library is written from and to."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("docs/templates", "lab", "plugins", "roles", "scripts", "tosca"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("galaxy.yml", "docs/types.md", "docs/indigo.md"):
        shutil.copy2(ROOT / name, folder / name)
    link = folder / ".work/collections/ansible_collections/gpufarm/cluster"
    link.parent.mkdir(parents=True)
    link.symlink_to(folder)
    return folder


def tosca_types(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, checkout / "scripts/tosca-types", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_words_of_an_argument_spec_reach_type_template_and_form_by_one_command(checkout: Path) -> None:
    spec = checkout / "roles/jupyterhub/meta/argument_specs.yml"
    before, after = "CPU cores that one notebook can use.", "Cores that V(one) notebook can use."
    assert spec.read_text().count(before) == 1
    spec.write_text(spec.read_text().replace(before, after))
    stale = tosca_types(checkout, "--check")
    done = tosca_types(checkout)
    assert (stale.returncode, done.returncode) == (1, 0), stale.stderr + done.stderr
    words = 'Cores that "one" notebook can use.'
    types = yaml.safe_load((checkout / "tosca/types/gpufarm_base.yaml").read_text())["node_types"]
    hub = types["tosca.nodes.gpufarm.base.JupyterHub"]["properties"]
    assert hub["jupyterhub_cpu_limit"]["description"] == words
    template = yaml.safe_load((checkout / "tosca/templates/ml_infn.yaml").read_text())["topology_template"]
    assert template["inputs"]["jupyter_cpu_limit"]["description"] == words
    # the dashboard bears no double quotes
    shown = words.replace('"', "'")
    theirs = yaml.safe_load((checkout / "tosca/indigo/templates/ml_infn.yaml").read_text())
    assert theirs["topology_template"]["inputs"]["jupyter_cpu_limit"]["description"] == shown
    form = yaml.safe_load((checkout / "tosca/dashboard/tosca-parameters/ml_infn.parameters.yml").read_text())
    assert form["inputs"]["jupyter_cpu_limit"]["description"] == shown
    assert words in (checkout / "docs/templates/ml_infn.md").read_text()
    for path in (
        "tosca/types/gpufarm_base.yaml",
        "tosca/templates/ml_infn.yaml",
        "tosca/indigo/templates/ml_infn.yaml",
        "tosca/dashboard/tosca-parameters/ml_infn.parameters.yml",
        "docs/templates/ml_infn.md",
    ):
        assert path in stale.stdout + stale.stderr


@pytest.mark.parametrize(
    "path", ["tosca/templates/gpu_node.yaml", "tosca/dashboard/tosca-parameters/gpu_node.parameters.yml"]
)
def test_a_file_that_is_edited_by_hand_is_refused(checkout: Path, path: str) -> None:
    file = checkout / path
    written = file.read_text()
    file.write_text(written.replace("Part of the GPUs'", "Some of the GPUs'").replace("CPUs", "Processors"))
    done = tosca_types(checkout, "--check")
    assert done.returncode == 1 and path in done.stdout + done.stderr
    file.write_text(written)


def test_a_template_without_a_source_is_refused(checkout: Path) -> None:
    stray = checkout / "tosca/templates/mine.yaml"
    stray.write_text("---\n")
    for arguments in ([], ["--check"]):
        done = tosca_types(checkout, *arguments)
        assert done.returncode == 1 and "mine.yaml has no source" in done.stdout
    assert stray.exists()
    stray.unlink()
