# SPDX-License-Identifier: GPL-3.0-or-later
"""A removal frees each machine that it has cleaned, and gives up machines if the operator says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deployer_site import DATA, Site
from deployer_stub import StubSite, install

FARM = DATA / "farm.yaml"
PAIR = """
tosca_definitions_version: tosca_simple_yaml_1_3
imports: [types.yaml]
topology_template:
  inputs:
    folder: {type: string}
  node_templates:
    head: {type: tosca.nodes.Compute}
    worker: {type: tosca.nodes.Compute}
    hub:
      type: tosca.nodes.test.Note
      properties: {folder: {get_input: folder}, label: hub, text: {get_attribute: [worker, public_address]}}
      requirements: [{host: head}]
    member:
      type: tosca.nodes.test.Note
      properties: {folder: {get_input: folder}, label: member}
      requirements: [{host: worker}, {dependency: hub}]
    clock:
      type: tosca.nodes.test.Note
      properties: {folder: {get_input: folder}, label: clock, text: {get_attribute: [worker, public_address]}}
      requirements: [{host: head}]
"""


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


@pytest.fixture
def pair(farm: StubSite) -> StubSite:
    """A hub on m1, and what needs it on m2."""
    path = farm.site.root / "pair.yaml"
    path.write_text(PAIR.replace("types.yaml", str(DATA / "types.yaml")))
    assert farm.deploy(path).status == 0
    return farm


def removed(farm: StubSite) -> list[str]:
    journal = [line.split(" ", 1) for line in farm.stub.journal()]
    return [note for operation, note in journal if operation == "delete"]


def held(farm: StubSite, name: str = "farm") -> list[str]:
    """The machines that nobody else gets."""
    hosts = {machine["host"] for machine in farm.site.remembered(name)["machines"].values()}
    listed = json.loads((farm.site.state / "machines" / f"{name}.json").read_text())
    assert {machine["host"] for machine in listed.values()} == hosts
    return sorted(hosts)


def test_a_dead_machine_keeps_no_other_one(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0 and held(farm) == ["m1", "m2", "m3"]
    farm.mark("dead", "m3")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 1
    assert held(farm) == ["m3"]
    for host in ("m5", "m6"):
        del farm.stub.hosts[host]
    assert farm.deploy(FARM, "--name", "other").status == 0
    assert held(farm, "other") == ["m1", "m2", "m4"], "others get those that are clean"
    farm.mark("dead")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert (
        sorted(note.split()[0] for note in removed(farm)) == ["base"] * 2 + ["clock", "list"] + ["tool"] * 2
    )


def test_a_machine_that_went_keeps_no_other_one(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    del farm.stub.hosts["m3"]
    shown = farm.site.gpufarm("undeploy", "farm", typed="n\n")
    assert "  leave tool[2] on m3: the inventory lacks this machine" in shown.error.splitlines()
    assert removed(farm) == [] and held(farm) == ["m1", "m2", "m3"]
    partly = farm.gpufarm("undeploy", "farm", "--yes")
    assert partly.status == 1 and "node worker[2] stands on m3, which is not in" in partly.error
    assert "give the machine up with --forget m3" in partly.error
    assert "not run because of that: list.delete" not in partly.error, "what needs the tool goes first"
    assert sorted(note.split()[0] for note in removed(farm)) == ["base", "clock", "list", "tool"]
    assert held(farm) == ["m3"]
    before = farm.site.remembered("farm")
    assert before["status"] == "failed" and "--forget m3" in before["failure"]
    refused = farm.gpufarm("undeploy", "farm", "--yes")
    assert refused.status == 2 and "--forget m3" in refused.error
    assert farm.site.remembered("farm") == before, "nothing was left to do"


def test_a_machine_is_given_up_by_its_name(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    for wrong, sentence in (("m2", "has it, so what stands there is taken away"), ("m9", "no such machine")):
        refused = farm.gpufarm("undeploy", "farm", "--yes", "--forget", wrong)
        assert refused.status == 2 and sentence in refused.error
    del farm.stub.hosts["m3"]
    gone = farm.gpufarm("undeploy", "farm", "--yes", "--forget", "m3", "--json")
    assert gone.status == 0, gone.error
    assert "  give up base[2] on m3: the inventory lacks this machine" in gone.error.splitlines()
    assert "given up: tool[2].delete on m3, base[2].delete on m3" in gone.error
    assert {step["host"] for step in json.loads(gone.output)["given_up"]} == {"m3"}
    assert not (farm.site.state / "farm.json").exists()
    (*_, last) = json.loads(farm.gpufarm("history", "farm", "--json").output)
    assert last["what"] == "undeploy --forget m3" and last["result"] == "done"


def test_a_machine_that_was_given_up_stays_so_when_others_fail(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    del farm.stub.hosts["m3"]
    farm.mark("broken", "delete:base")
    command = ("undeploy", "farm", "--yes", "--forget", "m3")
    assert farm.gpufarm(*command).status == 1
    assert held(farm) == ["m2"]
    farm.mark("broken")
    again = farm.gpufarm(*command)
    assert again.status == 0, again.error


def test_resuming_goes_on_without_the_machine_that_was_given_up(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    del farm.stub.hosts["m3"]
    farm.mark("broken", "delete:base")
    assert farm.gpufarm("undeploy", "farm", "--yes", "--forget", "m3").status == 1
    farm.mark("broken")
    assert farm.gpufarm("resume", "farm").status == 0
    assert not (farm.site.state / "farm.json").exists()


def test_what_is_needed_on_a_machine_that_went_waits_for_it(pair: StubSite) -> None:
    del pair.stub.hosts["m2"]
    partly = pair.gpufarm("undeploy", "pair", "--yes")
    assert partly.status == 1 and "not run because of that: hub.delete" in partly.error
    assert (
        "  leave hub on m1: it is needed on a machine that the inventory lacks" in partly.error.splitlines()
    )
    assert removed(pair) == ["clock m1 m2"] and held(pair, "pair") == ["m1", "m2"]
    assert pair.gpufarm("undeploy", "pair", "--yes", "--forget", "m2").status == 0
    assert removed(pair)[1:] == ["hub m1 m2"]


def test_what_is_left_still_knows_the_addresses_of_machines_that_were_freed(pair: StubSite) -> None:
    pair.mark("broken", "delete:clock")
    assert pair.gpufarm("undeploy", "pair", "--yes").status == 1
    assert held(pair, "pair") == ["m1"]
    pair.mark("broken")
    assert pair.gpufarm("undeploy", "pair", "--yes").status == 0
    assert removed(pair)[-1] == "clock m1 m2"


def test_a_farm_that_was_removed_in_part_can_be_deployed_again(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("dead", "m3")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 1
    farm.mark("dead")
    again = farm.gpufarm("deploy", FARM)
    assert again.status == 0, again.error
    assert len(held(farm)) == 3 and farm.site.remembered("farm")["freed"] == {}
    before = len(removed(farm))
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert len(removed(farm)) == before + 6


def test_scaling_down_frees_what_it_has_cleaned(farm: StubSite, tmp_path: Path) -> None:
    assert farm.deploy(FARM).status == 0
    assert farm.gpufarm("scale", "farm", "worker=4").status == 0
    farm.mark("dead", "m5")
    assert farm.gpufarm("scale", "farm", "worker=1").status == 1
    assert held(farm) == ["m1", "m2", "m5"]
    farm.mark("dead")
    assert farm.gpufarm("resume", "farm").status == 0
    assert held(farm) == ["m1", "m2"]


def test_scaling_down_gives_a_machine_up_that_went(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    assert farm.gpufarm("scale", "farm", "worker=4").status == 0
    before = held(farm)
    del farm.stub.hosts["m5"]
    refused = farm.gpufarm("scale", "farm", "worker=2")
    assert refused.status == 2 and "node worker[4] stands on m5, which is not in" in refused.error
    assert "give the machine up with gpufarm scale farm worker=2 --forget m5\n" in refused.error
    assert removed(farm) == [] and held(farm) == before
    for wrong, sentence in (("m4", "has it, so what stands there is taken away"), ("m9", "no such machine")):
        refused = farm.gpufarm("scale", "farm", "worker=2", "--forget", wrong)
        assert refused.status == 2 and sentence in refused.error
    less = farm.gpufarm("scale", "farm", "worker=2", "--forget", "m5")
    assert less.status == 0, less.error
    assert {note.split()[1] for note in removed(farm)} == {"m4"}
    assert held(farm) == ["m1", "m2", "m3"]
    (*_, last) = json.loads(farm.gpufarm("history", "farm", "--json").output)
    assert last["what"] == "scale worker=2, --forget m5" and last["result"] == "done"


def test_a_machine_that_was_given_up_on_the_way_down_stays_so_when_others_fail(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    assert farm.gpufarm("scale", "farm", "worker=4").status == 0
    del farm.stub.hosts["m5"]
    farm.mark("broken", "delete:base")
    assert farm.gpufarm("scale", "farm", "worker=2", "--forget", "m5").status == 1
    assert held(farm) == ["m1", "m2", "m3", "m4"]
    farm.mark("broken")
    assert farm.gpufarm("resume", "farm").status == 0
    assert held(farm) == ["m1", "m2", "m3"]


def test_a_plan_tells_which_machine_went(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("broken", "delete:base")
    assert farm.gpufarm("scale", "farm", "worker=1").status == 1
    del farm.stub.hosts["m3"]
    told = farm.gpufarm("plan", FARM)
    assert told.status == 2 and "gpufarm scale farm worker=1 --forget m3" in told.error
    assert farm.gpufarm("deploy", FARM).error.endswith("gpufarm scale farm worker=1 --forget m3\n")
