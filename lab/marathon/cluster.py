"""The agents behind a fake, and which of them an offer would be taken from.

Sources: mesosphere/marathon, NoOfferMatchReason.scala (names and order of the reasons), docs/constraints.md,
docs/preferential-gpu-scheduling.md; ResourceMatcher.scala for the label GPU_SCHEDULING_BEHAVIOR.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

RESOURCES = {
    "cpus": "InsufficientCpus",
    "mem": "InsufficientMemory",
    "disk": "InsufficientDisk",
    "gpus": "InsufficientGpus",
}
# The first reason that applies is reported.
FUNNEL = (
    "UnfulfilledRole",
    "UnfulfilledConstraint",
    "NoCorrespondingReservationFound",
    "AgentMaintenance",
    *RESOURCES.values(),
    "InsufficientPorts",
    "DeclinedScarceResources",
)
AGENTS = (
    {"host": "agent1", "cpus": 8, "mem": 16384, "disk": 100000, "attributes": {}},
    {"host": "gpu1", "cpus": 8, "mem": 16384, "disk": 100000, "gpus": 2, "attributes": {"model": "a100"}},
)

Agent = Mapping[str, Any]
Task = Mapping[str, Any]


def free(agent: Agent, tasks: Iterable[Task]) -> dict[str, float]:
    """Return what an agent has left, by resource."""
    used = [task["resources"] for task in tasks if task["host"] == agent["host"]]
    return {name: agent.get(name, 0) - sum(one.get(name, 0) for one in used) for name in RESOURCES}


def reason(
    app: Mapping[str, Any],
    agent: Agent,
    tasks: Sequence[Task],
    unrestricted: bool,
    room: Mapping[str, float] | None = None,
) -> str:
    """Return why an instance cannot start on an agent, empty when it can.

    :param tasks: all that run, of this app and of others
    :param unrestricted: whether apps without GPUs may take agents with GPUs
    :param room: what the quota of the app's role leaves, by resource; offers are cut to that
    """
    left = free(agent, tasks)
    left |= {name: min(left[name], most) for name, most in (room or {}).items() if name in left}
    roles = app.get("acceptedResourceRoles")
    if roles and agent.get("role", "*") not in roles:
        return "UnfulfilledRole"
    own = [task for task in tasks if task["appId"] == app["id"]]
    if not all(_meets(rule, agent, own) for rule in app.get("constraints", ())):
        return "UnfulfilledConstraint"
    for name, word in RESOURCES.items():
        if left[name] < app.get(name, 0):
            return word
    label = app.get("labels", {}).get("GPU_SCHEDULING_BEHAVIOR")
    open_to_all = label == "unrestricted" if label else unrestricted
    if not app.get("gpus") and left["gpus"] > 0 and not open_to_all:
        return "DeclinedScarceResources"
    return ""


def summary(reasons: Sequence[str]) -> list[dict[str, Any]]:
    """Return how many offers each rule declined, each rule seeing what the former ones let pass."""
    left = len(reasons)
    rows = []
    for word in FUNNEL:
        declined = reasons.count(word)
        rows.append({"reason": word, "declined": declined, "processed": left})
        left -= declined
    return rows


def _meets(rule: Sequence[str], agent: Agent, own: Sequence[Task]) -> bool:
    field, operator, *value = rule
    text = _field(field, agent["host"], agent.get("attributes", {}))
    if text is None:
        return operator == "UNLIKE"
    same = sum(_field(field, task["host"], task["attributes"]) == text for task in own)
    if operator == "UNIQUE":
        return same == 0
    if operator == "MAX_PER":
        return same < int(value[0])
    if operator == "CLUSTER":
        return text == value[0] if value else same == len(own)
    if operator == "GROUP_BY":
        return True  # any single agent will do; how evenly instances spread is not modelled
    matches = re.fullmatch(value[0], text) is not None if operator in ("LIKE", "UNLIKE") else text == value[0]
    return matches != (operator == "UNLIKE")


def _field(field: str, host: str, attributes: Mapping[str, str]) -> str | None:
    return host if field in ("hostname", "@hostname") else attributes.get(field)
