"""A deployment removes the results of its own steps, after a confirmation."""

from __future__ import annotations

import os

import pytest
from deployer_site import DATA, HERE, SERVICE, Site
from deployer_stub import StubSite, exit_now, install

FARM = DATA / "farm.yaml"


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


def removed(farm: StubSite) -> list[str]:
    return [line.split()[1] for line in farm.stub.journal() if line.startswith("delete")]


def test_it_shows_what_will_go_and_asks(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    shown = farm.site.gpufarm("undeploy", "farm", typed="n\n")
    assert shown.status == 1 and removed(farm) == []
    for line in ("tool on m2", "tool[2] on m3", "list on m1"):
        assert f"  remove {line}" in shown.error.splitlines()
    assert "farm: nothing was removed" in shown.error
    assert farm.gpufarm("outputs", "farm").status == 0, "it is deployed as before"
    assert farm.site.gpufarm("undeploy", "farm", typed="y\n").status == 0
    assert sorted(removed(farm)) == ["base", "base", "clock", "list", "tool", "tool"]


def test_a_program_says_yes_beforehand(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    answer = farm.site.gpufarm("undeploy", "farm")
    assert answer.status == 2 and "nobody is there to ask: add --yes" in answer.error
    assert removed(farm) == [] and farm.gpufarm("status", "farm").output.startswith("farm: deployed")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert len(removed(farm)) == 6


def test_what_was_there_before_stays(farm: StubSite) -> None:
    """Somebody else had set it up: the deployment found nothing to change."""
    farm.mark("there", "base")
    assert farm.deploy(FARM).status == 0
    gone = farm.gpufarm("undeploy", "farm", "--yes")
    assert gone.status == 0 and sorted(removed(farm)) == ["clock", "list", "tool", "tool"]
    assert "  keep base on m2: this deployment changed nothing there" in gone.error.splitlines()


def test_a_step_that_failed_without_a_change_is_not_undone(farm: StubSite) -> None:
    farm.mark("broken", "base")
    assert farm.deploy(FARM).status == 1
    status = farm.gpufarm("status", "farm").output
    assert "tool" not in status.partition("failure:")[0], "what never ran is not listed as begun"
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert removed(farm) == ["clock"]
    assert farm.deploy(FARM).status == 1, "its machines are free"


@pytest.mark.parametrize("how", ["broken-late", "dead-late", "broken-changed"])
def test_a_step_that_failed_after_a_change_is_undone(farm: StubSite, how: str) -> None:
    farm.mark(how, "base")
    assert farm.deploy(FARM).status == 1
    farm.mark(how)
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert sorted(removed(farm)) == ["base", "base", "clock"]


def test_a_failure_does_not_forget_what_was_made_before(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("broken", "base")
    assert farm.deploy(FARM).status == 1
    farm.mark("broken")
    farm.mark("there", "base", "tool", "list", "clock")
    assert farm.deploy(FARM).status == 0
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert len(removed(farm)) == 6, "later runs found nothing to change, but the first one did it all"


def test_what_a_killed_run_may_have_done_is_undone(farm: StubSite) -> None:
    """Ansible may go on for a while after the deployer was killed, so nobody knows how far it came."""
    child = os.fork()
    if child == 0:
        farm.stub.point = exit_now
        farm.deploy(FARM)
    _child, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert sorted(removed(farm)) == ["base", "base", "clock", "list", "tool", "tool"]


def test_resuming_does_not_ask_again(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("broken", "delete:tool")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 1
    farm.mark("broken")
    assert farm.gpufarm("resume", "farm").status == 0
    assert len(removed(farm)) == 6


def test_scaling_down_keeps_what_was_there_before(farm: StubSite) -> None:
    farm.mark("there", "base")
    assert farm.deploy(FARM).status == 0
    assert farm.gpufarm("scale", "farm", "worker=1").status == 0
    assert removed(farm) == ["tool"]


def test_with_ansible_itself(site: Site) -> None:
    """A second deployment finds the note of the first, fails at its own, and takes neither away."""
    assert site.deploy().status == 0
    second = ("--name", "second", "--input", "fails=true")
    site.machines(here=HERE, there={**HERE, "ansible_host": "localhost"})
    failed = site.deploy(*second)
    assert failed.status == 1 and "was told to fail" in failed.error
    gone = site.gpufarm("undeploy", "second", "--yes")
    assert gone.status == 0, gone.error
    assert "keep first on there" in gone.error
    assert (site.notes / "first").exists() and (site.notes / "second").exists()
    assert site.gpufarm("plan", SERVICE, "--name", "notes").status == 0
