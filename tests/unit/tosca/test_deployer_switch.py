"""A node that is switched off is in no plan and no run, unless there is something to take away."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from deployer_site import DATA, Site
from deployer_stub import StubSite, install
from gpufarm import inventory, template
from gpufarm.prepare import Request
from gpufarm.state import Store

SWITCHED = DATA / "switched.yaml"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site, hosts=2)


def run(farm: StubSite, command: str, *arguments: str) -> list[str]:
    """Give a command and return the operations that it ran."""
    before = len(farm.stub.journal())
    words = [SWITCHED, "--pool", farm.site.pool] if command == "deploy" else ["switched"]
    answer = farm.gpufarm(command, *words, *arguments)
    assert answer.status == 0, answer.error
    return [" ".join(line.split()[:2]) for line in farm.stub.journal()[before:]]


def planned(farm: StubSite, *arguments: str) -> dict[str, tuple[int, str]]:
    """Wave and reason of each step of a plan."""
    answer = farm.gpufarm("plan", SWITCHED, "--pool", farm.site.pool, "--json", *arguments)
    assert answer.status == 0, answer.error
    return {step["step"]: (step["wave"], step["reason"]) for step in json.loads(answer.output)["steps"]}


def test_it_is_left_out(farm: StubSite) -> None:
    assert planned(farm) == {"first.configure": (1, "new"), "last.configure": (2, "new")}, "in the same order"
    assert run(farm, "deploy") == ["configure first", "configure last"]
    shown = json.loads(farm.gpufarm("show", "switched", "--json").output)
    assert shown["steps"] == ["first.configure", "last.configure"] and shown["outputs"] == {"path": ""}
    assert run(farm, "update") == [], "nothing is to do"
    assert run(farm, "update", "--input", "text=new") == ["configure last"]
    assert run(farm, "deploy") == ["configure first", "configure last"]
    assert run(farm, "undeploy", "--yes") == ["delete last", "delete first"]


def test_switching_on_and_off(farm: StubSite) -> None:
    run(farm, "deploy")
    assert run(farm, "update", "--input", "lamp=true") == ["configure middle", "configure last"]
    assert json.loads(farm.gpufarm("outputs", "switched", "--json").output)["path"]
    off = ("--input", "lamp=false")
    assert planned(farm, *off)["middle.configure"] == (2, "lamp_enabled changed")
    assert run(farm, "update", *off) == ["configure middle", "configure last"], "the role takes it away"
    assert "middle.configure" not in planned(farm)
    assert run(farm, "deploy") == ["configure first", "configure last"]
    assert run(farm, "undeploy", "--yes") == ["delete last", "delete middle", "delete first"]


def test_taking_it_away_is_repeated_until_it_is_done(farm: StubSite) -> None:
    run(farm, "deploy", "--input", "lamp=true")
    farm.mark("broken", "middle")
    assert farm.gpufarm("update", "switched", "--input", "lamp=false").status == 1
    farm.mark("broken")
    assert run(farm, "resume") == ["configure middle", "configure last"]
    assert run(farm, "resume") == []


def test_an_inventory_still_says_that_it_is_off(farm: StubSite) -> None:
    """Playbooks of the collection would set it up otherwise."""
    content = yaml.safe_load(SWITCHED.read_text())
    nodes = content["topology_template"]["node_templates"]
    nodes["middle"]["requirements"] = [{"host": "server"}]
    del nodes["first"], nodes["last"]
    path = farm.site.root / "switched.yaml"
    path.write_text(yaml.safe_dump(content))
    for name in ("types.yaml", "playbooks"):
        (farm.site.root / name).symlink_to(DATA / name)
    library, topology = template.read(path)
    request = Request(topology, library, farm.site.pool, "switched", {})
    found = inventory.read(Store(farm.site.state), request)
    assert found.chosen["m1"]["lamp_enabled"] is False and found.groups["middle"] == ["m1"]


def test_every_role_that_can_be_switched_off_is_known() -> None:
    types = yaml.safe_load((ROOT / "tosca" / "types" / "gpufarm_base.yaml").read_text())["node_types"]
    for body in types.values():
        role = body.get("metadata", {}).get("role", "").rpartition(".")[2]
        switch = f"{role}_enabled" if f"{role}_enabled" in body.get("properties", {}) else None
        assert body.get("metadata", {}).get("switch") == switch, role
