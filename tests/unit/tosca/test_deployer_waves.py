"""Waves, failures, continuing, updating, scaling: on many machines that are none (see deployer_stub)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deployer_site import DATA, Site
from deployer_stub import StubSite, install
from gpufarm import ansible, pool
from gpufarm.plan import Step
from gpufarm.pool import Pool
from gpufarm.progress import Progress

FARM = DATA / "farm.yaml"


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


def steps_of(farm: StubSite) -> list[str]:
    return json.loads(farm.gpufarm("status", "farm", "--json").output)["steps"]


def test_waves(farm: StubSite) -> None:
    shown = farm.gpufarm("plan", FARM, "--pool", farm.site.pool, "--input", "folder=/x", "--json")
    waves = {entry["step"]: entry["wave"] for entry in json.loads(shown.output)["steps"]}
    assert waves == {
        "base.configure": 1,
        "base[2].configure": 1,
        "clock.configure": 1,
        "tool.configure": 2,
        "tool[2].configure": 2,
        "list.configure": 3,
    }
    done = farm.deploy(FARM)
    assert done.status == 0, done.error
    assert done.output.splitlines() == [
        *("workers:", "  - m2", "  - m3"),
        *("paths:", "  - /m2/tool", "  - /m3/tool"),
    ]
    assert farm.stub.processes == 3, "one for each kind of machine, one for what needs other machines"
    assert farm.stub.journal()[-1] == "configure list m1 workers ['m2', 'm3']"


def test_the_log_tells_on_which_machines_what_runs_side_by_side(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    (log,) = farm.site.state.rglob("farm*.log")
    assert {"[m1] TASK [Write] on m1", "[m2 +1] TASK [Write] on m2 m3"} <= set(log.read_text().splitlines())
    assert "TASK [Write] on m1" in log.read_text().splitlines(), "the last one runs alone"


def test_nodes_get_the_addresses_of_machines(farm: StubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(path: Path, hosts: dict[str, Any]) -> Pool:
        found = farm.stub.look(path, hosts)
        return replace(
            found,
            machines={
                host: replace(one, address=f"10.0.0.{host[1:]}") for host, one in found.machines.items()
            },
        )

    monkeypatch.setattr(pool, "look", looked)
    done = farm.deploy(FARM)
    assert done.status == 0, done.error
    assert farm.stub.journal()[-1] == "configure list m1 workers ['10.0.0.2', '10.0.0.3']"
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert "delete list m1 workers ['10.0.0.2', '10.0.0.3']" in farm.stub.journal()


def test_a_machine_that_is_given_up_is_not_free_before_that(farm: StubSite, tmp_path: Path) -> None:
    text = (DATA / "named.yaml").read_text().replace("types.yaml", str(DATA / "types.yaml"))
    named = tmp_path / "named.yaml"
    for node, machine in (("server", "m1"), ("other", "m2")):
        named.write_text(text.replace("server", node))
        answer = farm.gpufarm("deploy", named, "--pool", farm.site.pool, "--input", "label=one")
        assert answer.status == 0, answer.error
        assert f"{node}: {machine}" in farm.gpufarm("status", "named").output


def test_a_failure_stops_only_what_needs_it(farm: StubSite) -> None:
    farm.mark("broken", "base")
    farm.stub.hosts["m3"]["x"] = 1
    failed = farm.deploy(FARM)
    assert failed.status == 1
    assert farm.stub.journal() == ["configure clock m1"]
    assert 'base.configure on m2: task "Write" failed: base is broken' in failed.error
    assert "base[2].configure on m3: " in failed.error
    assert "not run because of that: list.configure, tool.configure, tool[2].configure" in failed.error

    farm.mark("broken")
    farm.mark("dead", "m3")
    half = farm.gpufarm("resume", "farm")
    assert half.status == 1 and "base[2].configure: m3 cannot be reached: timed out" in half.error
    assert [line.split()[1:3] for line in farm.stub.journal()[1:]] == [["base", "m2"], ["tool", "m2"]]

    farm.mark("dead")
    assert farm.gpufarm("resume", "farm").status == 0
    assert [line.split()[1:3] for line in farm.stub.journal()[3:]] == [
        ["base", "m3"],
        ["tool", "m3"],
        ["list", "m1"],
    ]
    runs = json.loads(farm.gpufarm("history", "farm", "--json").output)
    assert [(run["what"], run["result"], run["done"]) for run in runs] == [
        ("deploy input folder", "failed", 1),
        ("resume", "failed", 2),
        ("resume", "done", 3),
    ]
    assert "@" in runs[0]["who"] and runs[0]["began"] <= runs[0]["ended"] and "broken" in runs[0]["failure"]


def test_a_rescued_failure_is_none(farm: StubSite) -> None:
    farm.mark("rescued", "base", "list")
    assert farm.deploy(FARM).status == 0
    assert len(steps_of(farm)) == 6


def test_events_for_a_caller(farm: StubSite, tmp_path: Path) -> None:
    farm.mark("broken", "list")
    events = tmp_path / "events.jsonl"
    arguments = ("--pool", farm.site.pool, "--input", "folder=/x")
    assert farm.gpufarm("--events", events, "deploy", FARM, *arguments).status == 1
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert events.stat().st_mode & 0o077 == 0 and all(entry["time"] for entry in told)
    of_tool = [entry["event"] for entry in told if entry.get("step") == "tool[2].configure"]
    assert of_tool == ["started", "finished"]
    (failed,) = [entry for entry in told if entry["event"] == "failed"]
    assert (failed["step"], failed["host"]) == ("list.configure", "m1") and "broken" in failed["failure"]
    assert told[-1]["event"] == "ended" and told[-1]["result"] == "failed"
    farm.mark("broken")
    assert farm.gpufarm("--events", events, "resume", "farm").status == 0
    assert json.loads(events.read_text().splitlines()[-1])["result"] == "done", "lines are added"


def test_a_table_of_what_runs(farm: StubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    shown = farm.deploy(FARM)
    assert shown.status == 0 and "tool.configure on m2: ok, 1 changed" in shown.error
    progress = Progress()
    step = Step("a", "configure", "m1", FARM, {}, frozenset(), {})
    for number in range(20):
        progress.started(replace(step, node=f"a{number}"))
    progress.task(replace(step, node="a3"), "Install [it]")
    with progress.console.capture() as screen:
        progress.console.print(progress.table())
    assert screen.get().count("Install [it]") == 12 and "and 8 more" in screen.get()


def test_update_does_what_is_necessary(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.stub.processes = 0
    nothing = farm.gpufarm("update", "farm")
    assert nothing.status == 0 and "farm: nothing to do" in nothing.error and farm.stub.processes == 0

    shown = json.loads(farm.gpufarm("plan", FARM, "--input", "text=bye", "--json").output)["steps"]
    reasons = {entry["step"]: entry["reason"] for entry in shown if entry["needed"]}
    assert reasons == {
        "tool.configure": "text changed",
        "tool[2].configure": "text changed",
        "list.configure": "what it needs is applied anew",
    }
    before = len(farm.stub.journal())
    assert farm.gpufarm("update", "farm", "--input", "text=bye").status == 0
    assert [line.split()[1] for line in farm.stub.journal()[before:]] == ["tool", "tool", "list"]
    assert farm.deploy(FARM).status == 0
    assert len(farm.stub.journal()) == before + 3 + 6, "deploy applies everything"


def test_what_needs_an_interrupted_update_is_done_by_resume(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("broken", "tool")
    assert farm.gpufarm("update", "farm", "--input", "text=bye").status == 1
    farm.mark("broken")
    before = len(farm.stub.journal())
    assert farm.gpufarm("resume", "farm").status == 0
    assert [line.split()[1] for line in farm.stub.journal()[before:]] == ["tool", "tool", "list"]


def test_scale(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    before = len(farm.stub.journal())
    more = farm.gpufarm("scale", "farm", "worker=3")
    assert more.status == 0, more.error
    assert [line.split()[:3] for line in farm.stub.journal()[before:]] == [
        ["configure", "base", "m4"],
        ["configure", "tool", "m4"],
        ["configure", "list", "m1"],
    ]
    assert farm.stub.journal()[-1].endswith("workers ['m2', 'm3', 'm4']")

    before = len(farm.stub.journal())
    fewer = farm.gpufarm("scale", "farm", "worker=1")
    assert fewer.status == 0, fewer.error
    told, *taken = [line.split()[:3] for line in farm.stub.journal()[before:]]
    assert told == ["configure", "list", "m1"]
    assert sorted(taken[:2]) == [["delete", "tool", "m3"], ["delete", "tool", "m4"]]
    assert sorted(taken[2:]) == [["delete", "base", "m3"], ["delete", "base", "m4"]]
    assert farm.stub.journal()[before].endswith("workers m2"), "what refers to them is told first"
    assert set(farm.site.remembered("farm")["machines"]) == {"head", "worker"}
    assert set(steps_of(farm)) == {"base.configure", "tool.configure", "list.configure", "clock.configure"}
    assert fewer.output.splitlines() == ["workers: m2", "paths: /m2/tool"]
    assert farm.deploy(FARM).status == 0
    assert set(farm.site.remembered("farm")["machines"]) == {"head", "worker"}, "the number is remembered"

    for wrong, sentence in (
        ("worker=9", "worker=9: farm.yaml allows 1 to 4 instances"),
        ("head=2", "head=2: farm.yaml allows 1 instance;"),
        ("wroker=2", "wroker is no machine of farm.yaml; did you mean worker?"),
        ("worker", "write it as NODE=N"),
    ):
        answer = farm.gpufarm("scale", "farm", wrong)
        assert answer.status == 2 and sentence in answer.error, answer
    assert farm.gpufarm("scale", "farm", "worker=4").status == 0
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert farm.deploy(DATA / "pair.yaml").status == 0, "all machines are free again"


def test_scaling_down_that_failed_is_continued(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("broken", "tool")
    assert farm.gpufarm("scale", "farm", "worker=1").status == 1
    assert "worker[2]" in farm.site.remembered("farm")["machines"], "it is not free before it is clean"
    farm.mark("broken")
    before = len(farm.stub.journal())
    assert farm.gpufarm("resume", "farm").status == 0
    assert farm.stub.journal()[before:] == ["delete tool m3", "delete base m3 m3"]
    assert set(farm.site.remembered("farm")["machines"]) == {"head", "worker"}


def test_undeploy_continues_too(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    farm.mark("broken", "tool")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 1
    farm.mark("broken")
    before = [line for line in farm.stub.journal() if line.startswith("delete")]
    assert {line.split()[1] for line in before} == {"list", "clock"}, "base waits for tool"
    assert farm.gpufarm("resume", "farm").status == 0
    gone = [line.split()[1] for line in farm.stub.journal() if line.startswith("delete")]
    assert sorted(gone) == ["base", "base", "clock", "list", "tool", "tool"], "each once"
    assert farm.gpufarm("status", "farm").status == 2
    assert "undeploy" in farm.gpufarm("history", "farm").output, "history stays"


def test_drift(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    before = farm.stub.journal()
    answer = farm.gpufarm("diff", "farm", "--json")
    assert answer.status == 5 and "farm differs from what was deployed" in answer.error
    assert json.loads(answer.output)["changed"]["clock.configure"] == ["Write"]
    assert farm.stub.journal() == before and farm.gpufarm("update", "farm").error == "farm: nothing to do\n"


def test_drift_names_what_was_made_for_whom_and_what_differs(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    entry = {"role": "mig", "owner": "a playbook", "at": "2026-11-25T10:11:12+00:00", "state": ["a", "b"]}
    farm.stub.records["m1"] = [entry]
    told = [line.split() for line in farm.gpufarm("diff", "farm").output.splitlines()]
    assert ["m1", "mig", "a", "playbook", "2026-11-25", "10:11", "a"] in told
    assert ["m1", "mig", "a", "playbook", "2026-11-25", "10:11", "b"] in told
    assert json.loads(farm.gpufarm("diff", "farm", "--json").output)["records"]["m1"] == [entry]


def test_a_refusal_is_not_based_on_old_facts(farm: StubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    assert farm.deploy(FARM).status == 0
    seen: list[int] = []
    look = farm.stub.look
    monkeypatch.setattr("gpufarm.pool.look", lambda path, hosts: seen.append(len(hosts)) or look(path, hosts))
    assert farm.deploy(DATA / "service.yaml", "--input", "num_cpus=99").status == 3
    assert seen == [3, 6], "first those that have just been changed, then all"
    monkeypatch.setattr(ansible, "inventory", lambda _path: {"m1": {}, "m2": {}, "m3": {}})
    assert farm.deploy(FARM).status == 0


def test_what_a_plan_has_seen_is_not_asked_again(farm: StubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    look = farm.stub.look
    monkeypatch.setattr("gpufarm.pool.look", lambda path, hosts: seen.append(len(hosts)) or look(path, hosts))
    assert farm.gpufarm("plan", FARM, "--pool", farm.site.pool, "--input", "folder=/x").status == 0
    assert farm.deploy(FARM).status == 0 and seen == [6]


def test_plan_touches_nothing(farm: StubSite) -> None:
    answer = farm.gpufarm("plan", FARM, "--pool", farm.site.pool, "--input", "folder=/x")
    assert answer.status == 0, answer.error
    lines = answer.output.splitlines()
    assert [line for line in lines if line.startswith("wave")] == ["wave 1", "wave 2", "wave 3"]
    assert "worker[2]: m3 (m3): 8 CPUs, 100.0 GB memory, debian 12, A100" in lines
    assert "  6. list.configure on m1: new" in lines
    assert farm.stub.journal() == [] and len(farm.gpufarm("status").output.splitlines()) == 1


def test_a_plan_tells_what_it_may_interrupt(farm: StubSite, tmp_path: Path) -> None:
    (tmp_path / "playbooks").symlink_to(DATA / "playbooks")
    (tmp_path / "farm.yaml").write_text(FARM.read_text())
    types = (DATA / "types.yaml").read_text()
    (tmp_path / "types.yaml").write_text(
        types.replace("metadata: {", "metadata: {disruption: may startle readers, ")
    )
    assert farm.deploy(tmp_path / "farm.yaml").status == 0
    shown = farm.gpufarm("plan", tmp_path / "farm.yaml", "--input", "text=bye", "--json")
    steps = {entry["step"]: entry["disruption"] for entry in json.loads(shown.output)["steps"]}
    assert steps["tool.configure"] == "may startle readers" and steps["clock.configure"] == ""
    assert '     * text: "bye"' in farm.gpufarm("plan", tmp_path / "farm.yaml", "--input", "text=bye").output


def test_a_machine_that_went_away(farm: StubSite) -> None:
    assert farm.deploy(FARM).status == 0
    del farm.stub.hosts["m3"]
    answer = farm.deploy(FARM)
    assert answer.status == 3 and "node worker[2] stands on m3, which is not in" in answer.error
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 1, "what can be reached is removed"
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 2, "nothing else is left to do"


def test_a_deployment_stays_what_it_is(farm: StubSite, tmp_path: Path) -> None:
    assert farm.deploy(FARM).status == 0
    other = tmp_path / "farm.yaml"
    other.write_text(FARM.read_text().replace("- types.yaml", f"- {DATA / 'types.yaml'}"))
    answer = farm.gpufarm("deploy", other)
    assert answer.status == 2 and "choose another --name" in answer.error


def test_what_was_only_stopped_is_still_to_be_deleted(farm: StubSite, tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    for name, copy in (("configure", "configure"), ("delete", "delete"), ("delete", "stop")):
        (tmp_path / "playbooks" / f"{copy}.yml").write_text((DATA / "playbooks" / f"{name}.yml").read_text())
    (tmp_path / "farm.yaml").write_text(FARM.read_text())
    types = (DATA / "types.yaml").read_text()
    (tmp_path / "types.yaml").write_text(
        types.replace("          delete:\n", "          stop: playbooks/stop.yml\n          delete:\n")
    )
    assert farm.deploy(tmp_path / "farm.yaml").status == 0
    farm.mark("broken", "delete:clock")
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 1
    farm.mark("broken")
    before = len(farm.stub.journal())
    assert farm.gpufarm("resume", "farm").status == 0
    assert farm.stub.journal()[before:] == ["stop clock m1", "delete clock m1"]
