"""`gpufarm report`: hours from the machines of deployments and of an inventory."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import csv
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from deployer_site import DATA, HERE, Site
from gpufarm.hours import Sources
from gpufarm.serve.child import Child

NOON = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp())
# As sacct 24.11.5 prints jobs with SLURM_TIME_FORMAT=%s; the first account is a formula in a spreadsheet.
SACCT = f"""\
17|farm|=ada|physics|{NOON - 7200}|{NOON - 3600}|cpu=2,gres/gpu:1g.10gb=1,gres/gpu=1,mem=512M
18|farm|ben|course|{NOON - 1800}|{NOON}|cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8G
"""
NOVEMBER = ("--since", "2026-11-01", "--before", "2026-12-01")
CONTROLLER = {
    "tosca_definitions_version": "tosca_simple_yaml_1_3",
    "metadata": {"template_name": "cluster"},
    "imports": [str(DATA / "types.yaml")],
    "node_types": {
        "tosca.nodes.test.Controller": {
            "derived_from": "tosca.nodes.test.Note",
            "metadata": {"inventory_group": "slurm_controllers"},
        }
    },
    "topology_template": {
        "inputs": {"folder": {"type": "string"}},
        "node_templates": {
            "server": {"type": "tosca.nodes.Compute"},
            "slurm": {
                "type": "tosca.nodes.test.Controller",
                "properties": {"folder": {"get_input": "folder"}, "label": "slurm"},
                "requirements": [{"host": "server"}],
            },
        },
    },
}


@pytest.fixture(autouse=True)
def sacct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has a sacct, and no account needs another one's rights."""
    program = tmp_path / "bin" / "sacct"
    program.parent.mkdir()
    (tmp_path / "jobs").write_text(SACCT)
    program.write_text(f"#!/bin/sh\nexec cat {tmp_path}/jobs\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def inventory(site: Site, **groups: list[str]) -> None:
    """An inventory with groups of machines, all of which are this one; one called `dead` has no Python."""
    here = HERE | {"ansible_become": False}
    hosts = {
        host: here | ({"ansible_python_interpreter": "/nowhere"} if host == "dead" else {})
        for members in groups.values()
        for host in members
    }
    children = {name: {"hosts": dict.fromkeys(members)} for name, members in groups.items()}
    site.pool.write_text(yaml.safe_dump({"all": {"hosts": hosts, "children": children}}, sort_keys=False))


def test_the_hours_of_an_inventory_are_a_table_and_files(site: Site) -> None:
    inventory(site, slurm_controllers=["here"])
    folder = site.root / "november"
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER, "--by", "user", "--folder", folder)
    assert told.status == 0, told.error
    lines = [line.split() for line in told.output.splitlines()]
    assert lines[1:] == [
        ["=ada", "1.0", "0.0", "2.0", "0.5"],
        ["ben", "0.0", "1.0", "2.0", "4.0"],
        ["all", "1.0", "1.0", "4.0", "4.5"],
    ]
    rows = list(csv.DictReader((folder / "usage.csv").open()))
    assert [row["user"] for row in rows] == ["'=ada", "ben"]
    assert len(json.loads((folder / "usage.json").read_text())["records"]) == 2
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_the_machines_of_deployments_are_asked_without_an_inventory(site: Site) -> None:
    template = site.root / "cluster.yaml"
    template.write_text(yaml.safe_dump(CONTROLLER))
    inventory(site, machines=["here"])
    arguments = ("--pool", site.pool, "--input", f"folder={site.notes}")
    assert site.gpufarm("deploy", template, *arguments).status == 0
    template.unlink()  # what was deployed is remembered
    told = site.gpufarm("report", *NOVEMBER, "--by", "group", "--json")
    assert told.status == 0, told.error
    found = json.loads(told.output)
    assert [(row["group"], row["cpu_hours"]) for row in found["rows"]] == [("course", 2.0), ("physics", 2.0)]
    assert found["since"] == "2026-11-01T00:00:00+00:00" and found["silent"] == {}
    assert found["machines"] == {"here": "cluster"}


def test_hours_by_machine_have_the_names_of_the_inventory(site: Site) -> None:
    inventory(site, slurm_controllers=["here"])
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER, "--by", "machine", "--json")
    found = json.loads(told.output)
    assert [row["machine"] for row in found["rows"]] == ["here"]
    assert found["machines"] == {"here": ""}


def test_a_machine_that_does_not_answer_is_named_and_the_others_count(site: Site) -> None:
    inventory(site, slurm_controllers=["here"], jupyterhubs=["dead"])
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER, "--json")
    assert told.status == 1 and len(json.loads(told.output)["records"]) == 2
    assert "dead" in told.error and "/nowhere" in told.error


def test_nothing_is_reported_if_no_machine_answers(site: Site) -> None:
    inventory(site, jupyterhubs=["dead"])
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER)
    assert told.status == 1 and told.output == ""
    assert "the hours cannot be read" in told.error and "/nowhere" in told.error


@pytest.mark.parametrize("controllers", [["here", "other"], ["here", "dead"], ["dead", "here"]])
def test_a_cluster_counts_once_if_one_of_its_controllers_answers(site: Site, controllers: list[str]) -> None:
    inventory(site, slurm_controllers=controllers)
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER, "--json")
    assert told.status == 0, told.error
    found = json.loads(told.output)
    assert len(found["records"]) == 2 and found["silent"] == {}


def test_a_hub_that_does_not_answer_is_named_though_another_controller_does(site: Site) -> None:
    inventory(site, slurm_controllers=["dead", "here"], jupyterhubs=["dead"])
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER, "--json")
    assert told.status == 1 and [*json.loads(told.output)["silent"]] == ["dead"]


def test_the_name_of_a_folder_is_data(site: Site) -> None:
    inventory(site, slurm_controllers=["here"])
    folder = site.root / "{{ 6 * 7 }}"
    told = site.gpufarm("report", "--pool", site.pool, *NOVEMBER, "--folder", folder)
    assert told.status == 0, told.error
    assert (folder / "usage.csv").exists() and not (site.root / "42").exists()


def test_a_period_without_uses_is_said(site: Site) -> None:
    inventory(site, slurm_controllers=["here"])
    (site.root / "jobs").write_text("")
    told = site.gpufarm("report", "--pool", site.pool, "--since", "2026-10-01", "--before", "2026-11-01")
    assert told.status == 0 and told.output.startswith("nobody held anything from 2026-10-01")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no deployment has a hub or a controller of Slurm"),
        (("--since", "november"), "'november' is no date"),
        (("--since", "{{ lookup('pipe', 'id') }}"), "is no date"),
        (("--since", "2026-12-01", "--before", "2026-11-01"), "before it begins"),
    ],
)
def test_wrong_arguments_are_refused(site: Site, arguments: tuple[str, ...], words: str) -> None:
    inventory(site, **({"slurm_controllers": ["here"]} if arguments else {"others": ["here"]}))
    told = site.gpufarm("report", "--pool", site.pool, *arguments)
    assert (told.status, told.output) == (2, "") and words in told.error


def test_controllers_that_a_deployment_and_an_inventory_know_are_one_cluster() -> None:
    found = Sources()
    found.add(Path("first"), ["dead"], [])
    found.add(Path("second"), ["dead", "here"], [])
    assert found.slurm == [["dead", "here"]]


def test_a_worker_of_the_service_gets_each_use_by_month(site: Site) -> None:
    inventory(site, slurm_controllers=["here"], jupyterhubs=["dead"])
    order = {"kind": "HOURS", "since": "2026-11-01T00:00:00+00:00", "pool": str(site.pool)}
    order |= {"state": str(site.root / "fresh"), "password_file": ""}
    child = Child((sys.executable, "-m", "gpufarm.serve.attempt"), order)
    while not child.wait(1):
        pass
    told = child.ending
    assert told and told["well"], told
    assert told["machines"] == {"here": "", "dead": ""}
    assert [*told["silent"]] == ["dead"]
    found = [(row["identity"], row["user"], row["machine"], row["profile"]) for row in told["rows"]]
    assert found == [
        (f"farm/17/{NOON - 7200}", "=ada", "here", ""),
        (f"farm/17/{NOON - 7200}", "=ada", "here", "1g.10gb"),
        (f"farm/18/{NOON - 1800}", "ben", "here", ""),
    ]
