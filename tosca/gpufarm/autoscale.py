# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns the scaling policies of a deployment into numbers of instances."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpufarm import scaling
from gpufarm.errors import BadInput
from gpufarm.functions import Scope
from gpufarm.history import Entry
from gpufarm.instances import bounds, parsed
from gpufarm.policies import SCALING
from gpufarm.prepare import Request, values
from gpufarm.scaling import Decision, Situation
from gpufarm.state import Deployment
from gpufarm.values import in_units


@dataclass(frozen=True)
class Proposal:
    """How many instances a machine should have.

    Attributes:
        node: the machine.
        policy: the policy that says so.
        instances: how many there are.
        metrics: value of each metric.
        decision: how many there should be, and why.
    """

    node: str
    policy: str
    instances: int
    metrics: dict[str, float]
    decision: Decision


def changed(entries: Iterable[Entry]) -> datetime.datetime | None:
    """Tell when the number of instances was last changed.

    Args:
        entries: the runs of the deployment, the first one first.

    Returns:
        The time when the last run of ``scale`` began, whatever its end; None if there was none.
    """
    times = [entry.began for entry in entries if entry.what.split(" ")[0] in ("scale", "autoscale")]
    return datetime.datetime.fromisoformat(times[-1]) if times else None


def propose(
    request: Request,
    deployment: Deployment,
    ask: Callable[[str], float],
    entries: Iterable[Entry],
    now: datetime.datetime,
) -> list[Proposal]:
    """Evaluate the scaling policies.

    Args:
        request: asks for what the deployment is.
        deployment: as it is remembered.
        ask: gives the number for a query.
        entries: the runs of the deployment.
        now: the time.

    Returns:
        A proposal for each target of each scaling policy.

    Raises:
        BadInput: there is no scaling policy, two are for one machine, or one is wrong.
        GpufarmError: a metric cannot be had.
    """
    topology = request.template
    policies = [policy for policy in topology.policies.values() if SCALING in policy.kinds]
    if not policies:
        raise BadInput(
            f"{topology.path.name} has no policy of type {SCALING}; add one, or use `gpufarm scale`"
        )
    known = values(request, deployment)[1]
    scope = Scope(topology, known)
    last = changed(entries)
    rested = (now - last).total_seconds() if last else float("inf")
    found: dict[str, Proposal] = {}
    for policy in policies:
        properties = {key: scope.evaluate(value) for key, value in policy.properties.items()}
        metrics = {name: ask(query) for name, query in properties["metrics"].items()}
        for node in policy.targets:
            if node in found:
                raise BadInput(
                    f"policies {found[node].policy} and {policy.name} both scale {node}; remove one"
                )
            least, _default, most = bounds(topology.nodes[node])
            present = sum(parsed(machine)[0] == node for machine in deployment.machines)
            situation = Situation(present, least, most, metrics, properties["settings"])
            decision = scaling.decide(
                properties["decision"],
                situation,
                rested=rested,
                cooldown=in_units("scalar-unit.time", properties["cooldown"]),
            )
            found[node] = Proposal(node, policy.name, present, metrics, decision)
    return list(found.values())
