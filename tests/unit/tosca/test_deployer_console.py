# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`gpufarm console`: output of the tasks of a deployment, read by the playbook beside an operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import HERE, Site
from gpufarm import console, template
from gpufarm.api import Deployer
from gpufarm.collection import root

TEMPLATE = """
tosca_definitions_version: tosca_simple_yaml_1_3
node_types:
  tosca.nodes.test.Job:
    derived_from: tosca.nodes.Root
    metadata: {runs_on: controller}
    properties:
      told: {type: string}
      job_password: {type: string}
    interfaces:
      Standard:
        inputs:
          told: {type: string, value: {get_property: [SELF, told]}}
          job_password: {type: string, value: {get_property: [SELF, job_password]}}
        operations:
          configure: configure.yml
          delete: configure.yml
topology_template:
  inputs:
    told: {type: string}
    other: {type: string}
    job_password: {type: string}
  node_templates:
    one:
      type: tosca.nodes.test.Job
      properties: {told: {get_input: told}, job_password: {get_input: job_password}}
    two:
      type: tosca.nodes.test.Job
      properties: {told: {get_input: other}, job_password: {get_input: job_password}}
"""
PLAY = {"hosts": "{{ gpufarm_hosts }}", "gather_facts": False}
SECRET = "correct horse battery"
TASK = {
    "id": "t1",
    "state": "failed",
    "reason": f"no login with {SECRET}",
    "begun": 4e9,
    "ended": 4e9 + 1,
    "machine": "gpu1",
    "stdout": f"{SECRET} {{{{ 1 + 1 }}}} !unsafe\n",
    "stderr": "",
    "cut": ["stdout"],
    "unread": "",
}


@pytest.fixture
def jobs(site: Site) -> Site:
    """A deployment of two jobs, whose consoles are in two files."""
    site.machines(here=HERE)
    (site.root / "jobs.yaml").write_text(TEMPLATE)
    nothing = {**PLAY, "tasks": [{"ansible.builtin.debug": {"msg": "done"}}]}
    read = [
        {"ansible.builtin.slurp": {"src": "{{ told }}"}, "register": "_told"},
        {"ansible.builtin.set_fact": {"found": "{{ _told.content | b64decode | from_json }}"}},
        {"ansible.builtin.set_stats": {"data": {"tasks": "{{ found }}"}}},
    ]
    (site.root / "configure.yml").write_text(yaml.safe_dump([nothing]))
    (site.root / "console.yml").write_text(yaml.safe_dump([{**PLAY, "tasks": read}]))
    words = [word for name in ("told", "other") for word in ("--input", f"{name}={site.root}/{name}.json")]
    given = {"GPUFARM_INPUT_JOB_PASSWORD": SECRET}
    made = site.gpufarm("deploy", site.root / "jobs.yaml", "--pool", site.pool, *words, **given)
    assert made.status == 0, made.error
    return site


def tells(site: Site, name: str, *tasks: dict[str, Any]) -> None:
    (site.root / f"{name}.json").write_text(json.dumps(tasks))


def test_tasks_of_all_nodes_are_told_without_secrets(jobs: Site) -> None:
    tells(jobs, "told", TASK)
    others = ({**TASK, "id": "old", "begun": 1e9}, {**TASK, "id": "never", "begun": 0.0})
    tells(jobs, "other", {**TASK, "id": "t2", "begun": 5e9}, *others)
    before = {path: path.read_bytes() for path in jobs.state.rglob("*") if path.is_file()}
    told = jobs.gpufarm("console", "jobs", "--json")
    assert told.status == 0, told.error
    found = json.loads(told.output)
    assert [(one["node"], one["id"]) for one in found["tasks"]] == [("two", "t2"), ("one", "t1")]
    assert found["tasks"][1]["stdout"] == "*** {{ 1 + 1 }} !unsafe\n"
    assert found["tasks"][1]["reason"] == "no login with ***" and found["silent"] == {}
    assert {path: path.read_bytes() for path in jobs.state.rglob("*") if path.is_file()} == before
    shown = jobs.gpufarm("console", "jobs", "--task", "t1")
    assert shown.output.endswith("[stdout of t1, its end]\n*** {{ 1 + 1 }} !unsafe\n")
    assert jobs.gpufarm("console", "jobs", "--task", "t3").error.endswith("there are: t2, t1\n")


def test_a_task_that_the_cluster_tells_to_be_its_own_needs_no_time(jobs: Site) -> None:
    forgotten = {**TASK, "state": "lost", "begun": 0.0, "ended": 0.0, "own": True}
    tells(jobs, "told", forgotten, {**forgotten, "id": "t2", "own": False})
    tells(jobs, "other")
    found = json.loads(jobs.gpufarm("console", "jobs", "--json").output)["tasks"]
    assert [(one["id"], one["state"], one["stdout"]) for one in found] == [
        ("t1", "lost", "*** {{ 1 + 1 }} !unsafe\n")
    ]


def test_a_node_that_tells_nothing_is_named_and_the_other_one_is_read(jobs: Site) -> None:
    tells(jobs, "other", TASK)
    told = jobs.gpufarm("console", "jobs")
    assert told.status == 1 and "told.json" in told.error and "t1" in told.output
    assert len(told.error.splitlines()) == 1 and 'task "' not in told.error


def test_it_is_read_by_the_pool_that_counts_now(jobs: Site) -> None:
    """The service names it, as its operator may have moved the file since."""
    tells(jobs, "told", TASK)
    tells(jobs, "other")
    moved = jobs.pool.rename(jobs.root / "moved.yml")
    found = Deployer(jobs.state).console("jobs", pool=moved)
    assert [one.id for one in found.tasks] == ["t1"] and found.silent == {}


@pytest.mark.parametrize("change", ["another input", "another node", "no template", "no file"])
def test_it_is_read_by_the_template_that_was_deployed(jobs: Site, change: str) -> None:
    path, text = jobs.root / "jobs.yaml", TEMPLATE
    if change == "another input":
        text = TEMPLATE.replace("  inputs:\n    told", "  inputs:\n    colour: {type: string}\n    told")
    elif change == "another node":
        text = TEMPLATE.replace("    two:", "    second:")
    assert text != TEMPLATE or change.startswith("no ")
    path.write_text("--- no template\n" if change == "no template" else text)
    if change == "no file":
        path.unlink()
    tells(jobs, "told", TASK)
    tells(jobs, "other", {**TASK, "id": "t2", "begun": 5e9})
    told = jobs.gpufarm("console", "jobs", "--json")
    assert told.status == 0, told.error
    assert [(one["node"], one["id"]) for one in json.loads(told.output)["tasks"]] == [
        ("two", "t2"),
        ("one", "t1"),
    ]


def test_a_deployment_without_console_is_refused(site: Site) -> None:
    site.machines(here=HERE)
    assert site.deploy().status == 0
    told = site.gpufarm("console", "notes")
    assert told.status == 2 and "has no container and no job that prints anything" in told.error


def test_templates_of_the_collection_have_one_where_users_run_programs() -> None:
    found = {}
    for path in (root() / "tosca" / "templates").glob("*.yaml"):
        nodes = console.nodes(template.read(Path(path))[1])
        if nodes:
            found[path.stem] = nodes
    assert found == {
        "chronos_job": ["job"],
        "gpu_container": ["container"],
        "jupyter_container": ["container"],
        "marathon_app": ["app"],
        "slurm_job": ["job"],
    }
