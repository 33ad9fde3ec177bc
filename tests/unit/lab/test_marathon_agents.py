"""Tasks in the fake of Marathon after the loss of their agent, and how it detects that."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from lab.marathon import mesos
from lab.marathon.state import Marathon

AGENTS = [{"host": host, "cpus": 4, "mem": 4096, "disk": 100} for host in ("a1", "a2")]
APP = {
    "id": "/web",
    "cmd": "serve",
    "instances": 3,
    "constraints": [["hostname", "MAX_PER", "2"]],
    "cpus": 0.1,
}


class Clock:
    """A time that goes by when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def running(marathon: Marathon, clock: Clock, **app: Any) -> Marathon:
    """Have an app run."""
    marathon.meet(AGENTS, ["a1", "a2"])
    marathon.put_apps([{**APP, **app}], force=False)
    clock.now += 1
    marathon.advance()
    return marathon


def hosts(marathon: Marathon, state: str = "TASK_RUNNING") -> list[str]:
    return sorted(task["host"] for task in marathon.tasks("/web") if task["state"] == state)


def test_tasks_of_a_lost_agent_are_replaced_where_there_is_room(clock: Clock) -> None:
    marathon = running(Marathon(clock), clock)
    assert hosts(marathon) == ["a1", "a1", "a2"]
    marathon.meet(AGENTS[1:], ["a2"])
    marathon.advance()
    clock.now += 1
    marathon.advance()
    assert hosts(marathon) == ["a2", "a2"]
    assert marathon.queue()[0]["count"] == 1
    marathon.meet(AGENTS, ["a1", "a2"])
    marathon.advance()
    clock.now += 1
    marathon.advance()
    assert hosts(marathon) == ["a1", "a2", "a2"]
    states = [event["taskStatus"] for event in marathon.events if event["eventType"] == "status_update_event"]
    assert states.count("TASK_UNREACHABLE") == 2


def test_tasks_go_on_while_a_new_master_waits_for_their_agents(clock: Clock) -> None:
    marathon = running(Marathon(clock), clock)
    before = [task["id"] for task in marathon.tasks("/web")]
    marathon.meet([], ["a1", "a2"])
    marathon.advance()
    assert [task["id"] for task in marathon.tasks("/web")] == before
    assert len(hosts(marathon)) == 3


def test_a_new_leader_that_has_not_asked_yet_gives_nothing_up(clock: Clock) -> None:
    data = running(Marathon(clock), clock).data
    heir = Marathon(clock, (), data=data)
    clock.now += 60
    heir.advance()
    assert hosts(heir) == ["a1", "a1", "a2"]


def test_an_app_may_wait_for_its_agent(clock: Clock) -> None:
    strategy = {"inactiveAfterSeconds": 30, "expungeAfterSeconds": 60}
    marathon = running(Marathon(clock), clock, unreachableStrategy=strategy)
    before = [task["id"] for task in marathon.tasks("/web")]
    marathon.meet(AGENTS[1:], ["a2"])
    marathon.advance()
    assert hosts(marathon, "TASK_UNREACHABLE") == ["a1", "a1"]
    clock.now += 29
    marathon.meet(AGENTS, ["a1", "a2"])
    marathon.advance()
    assert hosts(marathon) == ["a1", "a1", "a2"]
    assert [task["id"] for task in marathon.tasks("/web")] == before
    marathon.meet(AGENTS[1:], ["a2"])
    marathon.advance()
    clock.now += 30
    marathon.advance()
    assert {task["host"] for task in marathon.tasks("/web")} == {"a2"}


def test_an_app_may_wait_for_ever(clock: Clock) -> None:
    marathon = running(Marathon(clock), clock, unreachableStrategy="disabled")
    marathon.meet(AGENTS[1:], ["a2"])
    clock.now += 1e6
    marathon.advance()
    assert hosts(marathon, "TASK_UNREACHABLE") == ["a1", "a1"]


def test_offers_are_cut_to_the_quota_of_the_role(clock: Clock) -> None:
    marathon = Marathon(clock)
    marathon.meet(AGENTS, ["a1", "a2"], {"ada": {"cpus": 1.0}, "ben": {}})
    marathon.put_apps([{**APP, "role": "ada", "cpus": 0.5}], force=False)
    marathon.put_apps([{**APP, "id": "/other", "role": "ben", "cpus": 0.5}], force=False)
    clock.now += 1
    marathon.advance()
    assert len(hosts(marathon)) == 2
    assert len(marathon.tasks("/other")) == 3
    (waiting,) = marathon.queue()
    reasons = {
        row["reason"]: row["declined"] for row in waiting["processedOffersSummary"]["rejectSummaryLastOffers"]
    }
    assert waiting["count"] == 1 and reasons["InsufficientCpus"] == 1


def test_no_two_tasks_of_a_host_have_the_same_port(clock: Clock) -> None:
    marathon = running(Marathon(clock), clock, instances=40, constraints=[])
    for _turn in range(30):
        marathon.kill([task["id"] for task in marathon.tasks("/web")[:20]])
        clock.now += 1
        marathon.advance()
        clock.now += 1
        marathon.advance()
        places = [(task["host"], port) for task in marathon.tasks("/web") for port in task["ports"]]
        assert len(places) == len(set(places)) == 40


def test_what_a_master_tells_of_its_agents() -> None:
    def info(host: str) -> dict[str, Any]:
        text = {"name": "gpu_model", "type": "TEXT", "text": {"value": "a100"}}
        return {"id": {"value": f"{host}-S0"}, "hostname": host, "port": 5051, "attributes": [text]}

    resources = [
        {"name": "cpus", "type": "SCALAR", "scalar": {"value": 4.0}},
        {"name": "gpus", "type": "SCALAR", "scalar": {"value": 1.0}},
        {"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 31000, "end": 32000}]}},
    ]
    told = {
        "agents": [
            {"agent_info": info("a1"), "active": True, "total_resources": resources},
            {"agent_info": info("a2"), "active": False, "total_resources": resources},
        ],
        "recovered_agents": [info("a3")],
    }
    quota = {"status": {"configs": [{"role": "ada", "limits": {"gpus": {"value": 1.0}}}, {"role": "ben"}]}}
    view = mesos.read(told, quota)
    assert view.agents == [{"host": "a1", "cpus": 4.0, "gpus": 1.0, "attributes": {"gpu_model": "a100"}}]
    assert view.alive == ["a1", "a2", "a3"]
    assert view.limits == {"ada": {"gpus": 1.0}, "ben": {}}
    assert mesos.read({}, {"status": {}}) == ([], [], {})
