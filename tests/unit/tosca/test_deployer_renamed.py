# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An update cannot give another name to what is there: nothing would take the former thing away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deployer_site import DATA, Site
from deployer_stub import StubSite, install
from gpufarm import plan, template
from gpufarm.functions import Scope

TEMPLATES = Path(__file__).resolve().parents[3] / "tosca" / "templates"
GIVEN = {"owner": "ada", "job_name": "train", "app_name": "plots", "command": "true", "docker_image": "x"}
NAMED: dict[str, dict[str, Any]] = {
    "chronos_job": {"chronos_job_definition.name": "ada.train"},
    "gpu_container": {"container_request_owner": "ada", "container_request_name": "gpu"},
    "jupyter_container": {"container_request_owner": "ada", "container_request_name": "notebook"},
    "marathon_app": {"marathon_app_definition.id": "/ada/plots"},
    "slurm_job": {"slurm_job_owner": "ada", "slurm_job_name": "train"},
}


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site, hosts=1)


def deploy(farm: StubSite, label: str, *more: str) -> tuple[int, str]:
    words = ("--pool", str(farm.site.pool), "--input", f"label={label}", *more)
    answer = farm.gpufarm("deploy", DATA / "named.yaml", *words)
    return answer.status, answer.error


def test_it_is_refused_before_any_change(farm: StubSite) -> None:
    assert deploy(farm, "one")[0] == 0
    done = farm.stub.journal()
    for command in (("plan", DATA / "named.yaml"), ("update", "named")):
        answer = farm.gpufarm(*command, "--input", "label=two")
        assert answer.status == 2
        assert "node note has made something under the former label; keep it, or make another" in answer.error
    assert farm.stub.journal() == done
    assert farm.gpufarm("update", "named", "--input", "text=other").status == 0
    assert farm.gpufarm("undeploy", "named", "--yes").status == 0
    assert deploy(farm, "two")[0] == 0


def test_what_was_never_made_may_get_another_name(farm: StubSite) -> None:
    """Such as after a refusal because somebody else has the name."""
    farm.mark("broken", "one")
    assert deploy(farm, "one")[0] == 1
    farm.mark("broken-changed", "two")
    assert deploy(farm, "two")[0] == 1
    status, error = deploy(farm, "three")
    assert status == 2 and "former label" in error
    farm.mark("broken-changed", "")
    assert deploy(farm, "two")[0] == 0


@pytest.mark.parametrize("name", NAMED)
def test_services_and_jobs_have_names(name: str) -> None:
    _library, topology = template.read(TEMPLATES / f"{name}.yaml")
    known = {one.name: one.default for one in topology.inputs.values()} | GIVEN
    for given in (frozenset[str](), frozenset(known)):  # a default that is written down is no other name
        steps = plan.steps(Scope(topology, known).on({}), {}, given)
        assert [step.named for step in steps] == [NAMED[name]]
