# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents of Mesos: what they are, and what it takes to drain them and to take them back. No I/O.

Sources: Mesos documentation, "Maintenance Primitives" and "Agent Draining"; src/master/http.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .quota import Amounts, amounts_of

ACTIVE, DEACTIVATED, DRAINING, DRAINED = "active", "deactivated", "draining", "drained"


class AgentError(ValueError):
    """An agent is not there; the text is one sentence for a user."""


class Agent(NamedTuple):
    """An agent that is registered.

    Attributes:
        id: the master's name for it.
        hostname: the machine's.
        port: where it listens.
        state: `active`, `deactivated`, `draining` or `drained`.
        resources: what it has in all, by resource.
        allocated: what tasks hold of it.
        attributes: by name, as text.
    """

    id: str
    hostname: str
    port: int
    state: str
    resources: Amounts
    allocated: Amounts
    attributes: dict[str, str]


def read_agents(answer: Mapping[str, Any]) -> list[Agent]:
    """Return the agents that GET_AGENTS tells, sorted by host name and port."""
    return sorted(map(_agent, answer.get("agents") or []), key=lambda one: (one.hostname, one.port))


def _agent(entry: Mapping[str, Any]) -> Agent:
    info = entry["agent_info"]
    drain = entry.get("drain_info", {}).get("state", "")
    if drain in ("DRAINING", "DRAINED"):
        state = drain.lower()
    else:
        state = DEACTIVATED if entry.get("deactivated") or not entry.get("active", True) else ACTIVE
    return Agent(
        info["id"]["value"],
        info["hostname"],
        int(info.get("port", 5051)),
        state,
        amounts_of(entry.get("total_resources")),
        amounts_of(entry.get("allocated_resources")),
        {one["name"]: _attribute(one) for one in info.get("attributes") or []},
    )


def _attribute(entry: Mapping[str, Any]) -> str:
    if "text" in entry:
        return str(entry["text"]["value"])
    if "scalar" in entry:
        return f"{entry['scalar']['value']:g}"
    ranges = entry.get("ranges", {}).get("range") or []
    return ",".join(f"{one['begin']}-{one['end']}" for one in ranges)


def choose(agents: Sequence[Agent], names: Sequence[str]) -> list[Agent]:
    """Return the agents that names stand for.

    Args:
        agents: all of the cluster.
        names: ids, host names, or host name and port.

    Raises:
        AgentError: a name stands for none, or for several.
    """
    chosen = []
    for name in names:
        found = [one for one in agents if name in (one.id, one.hostname, f"{one.hostname}:{one.port}")]
        if not found:
            raise AgentError(
                f"Mesos knows no agent {name}; it may have gone, or these credentials may not view it. There"
                f" are: {', '.join(one.hostname for one in agents) or 'none'}."
            )
        if len(found) > 1:
            raise AgentError(
                f"{name} has {len(found)} agents; name one as"
                f" {' or '.join(f'{one.hostname}:{one.port}' for one in found)}."
            )
        chosen += [one for one in found if one not in chosen]
    return chosen


def call_for(agent: Agent, state: str, grace: float | None) -> dict[str, Any] | None:
    """Return the call that brings an agent into a state: its `kind` and `fields`; None when nothing is to do.

    Args:
        agent: as it is.
        state: `active`, `deactivated` or `drained`.
        grace: seconds that tasks may take to end, at most; None for as long as each of them asks for.
    """
    agent_id = {"value": agent.id}
    if state == DRAINED and agent.state not in (DRAINING, DRAINED):
        fields: dict[str, Any] = {"agent_id": agent_id}
        if grace is not None:
            whole = int(grace)
            fields["max_grace_period"] = {"seconds": whole, "nanos": round((grace - whole) * 1e9)}
        return {"kind": "DRAIN_AGENT", "fields": fields}
    if state == ACTIVE and agent.state != ACTIVE:
        return {"kind": "REACTIVATE_AGENT", "fields": {"agent_id": agent_id}}
    if state == DEACTIVATED and agent.state == ACTIVE:
        return {"kind": "DEACTIVATE_AGENT", "fields": {"agent_id": agent_id}}
    return None


def reached(agent: Agent, state: str) -> bool:
    """Whether an agent is in a state; one that is drained is deactivated as well."""
    return agent.state == state or (state == DEACTIVATED and agent.state in (DRAINING, DRAINED))
