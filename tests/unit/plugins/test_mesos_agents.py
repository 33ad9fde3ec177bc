# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents: what a master tells of them, whom names mean, and the calls that drain them and take them back."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import agents


def entry(hostname: str = "gpu1", port: int = 5051, **state: Any) -> dict[str, Any]:
    info = {"id": {"value": f"{hostname}-{port}"}, "hostname": hostname, "port": port}
    attributes = [
        {"name": "gpu_model", "text": {"value": "A100"}},
        {"name": "rack", "scalar": {"value": 3.0}},
        {"name": "slots", "ranges": {"range": [{"begin": 1, "end": 2}]}},
    ]
    return {"agent_info": {**info, "attributes": attributes}, "active": True, **state}


@pytest.mark.parametrize(
    ("state", "meaning"),
    [
        ({}, "active"),
        ({"active": False}, "deactivated"),
        ({"deactivated": True}, "deactivated"),
        ({"drain_info": {"state": "DRAINING"}, "deactivated": True}, "draining"),
        ({"drain_info": {"state": "DRAINED"}, "deactivated": True}, "drained"),
    ],
)
def test_the_state_of_an_agent_is_read(state: dict[str, Any], meaning: str) -> None:
    (agent,) = agents.read_agents({"agents": [entry(**state)]})
    assert agent.state == meaning
    assert agent.attributes == {"gpu_model": "A100", "rack": "3", "slots": "1-2"}


def test_names_are_clear() -> None:
    known = agents.read_agents({"agents": [entry("b"), entry("a", 5052), entry("a")]})
    assert [one.id for one in known] == ["a-5051", "a-5052", "b-5051"]
    assert agents.choose(known, ["b", "a:5052", "b-5051"]) == [known[2], known[1]]
    with pytest.raises(agents.AgentError, match="a has 2 agents; name one as a:5051 or a:5052"):
        agents.choose(known, ["a"])
    with pytest.raises(agents.AgentError, match=r"no agent c; .* There are: none\."):
        agents.choose([], ["c"])


@pytest.mark.parametrize(
    ("now", "wanted", "kind"),
    [
        ("active", "drained", "DRAIN_AGENT"),
        ("deactivated", "drained", "DRAIN_AGENT"),
        ("draining", "drained", None),
        ("drained", "drained", None),
        ("drained", "active", "REACTIVATE_AGENT"),
        ("active", "active", None),
        ("active", "deactivated", "DEACTIVATE_AGENT"),
        ("drained", "deactivated", None),
    ],
)
def test_only_what_is_needed_is_called(now: str, wanted: str, kind: str | None) -> None:
    agent = agents.read_agents({"agents": [entry()]})[0]._replace(state=now)
    call = agents.call_for(agent, wanted, None)
    assert (call and call["kind"]) == kind
    assert agents.reached(agent, wanted) == (kind is None and now != "draining")


def test_time_to_end_is_given_in_seconds_and_nanoseconds() -> None:
    agent = agents.read_agents({"agents": [entry()]})[0]
    call = agents.call_for(agent, "drained", 1.25)
    assert call and call["fields"]["max_grace_period"] == {"seconds": 1, "nanos": 250_000_000}
