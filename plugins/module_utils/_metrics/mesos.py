# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A master of Mesos, and what it tells of the cluster if it leads, as metrics for Prometheus. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._mesos.agents import ACTIVE, read_agents
from .._mesos.quota import Amounts, read_quotas, sum_of
from .page import Page

# Gauges of a master (Mesos documentation, "Monitoring": Master Nodes).
LEADS = "master/elected"
UNREACHABLE = "master/slaves_unreachable"


@dataclass(frozen=True)
class Master:
    """Answers of the master of this machine.

    `snapshot` is the answer of `/metrics/snapshot`; None if it does not answer. `taken` is whether requests
    are taken, by itself or by the leader that it sends clients to: a master that leads without a quorum
    says in its metrics that it leads, and refuses every request. `agents` and `quotas` are the answers to
    GET_AGENTS and GET_QUOTA, `roles` those of `/master/roles`; None if they were not asked for, or not told.
    """

    snapshot: Mapping[str, float] | None = None
    taken: bool = False
    agents: Mapping[str, Any] | None = None
    quotas: Mapping[str, Any] | None = None
    roles: Sequence[Mapping[str, Any]] | None = None


def leads(snapshot: Mapping[str, float]) -> bool:
    """Return whether a master leads, from its metrics."""
    return snapshot.get(LEADS) == 1


def render(master: Master, problem: str, now: float) -> str:
    """Return the metrics of a master.

    Args:
        master: its answers.
        problem: why not all was told, empty if it was.
        now: when it was asked, in seconds since 1970.
    """
    page = Page()
    up = master.snapshot is not None
    page.add("gpufarm_mesos_master_up", "Whether the master answers.", [({}, float(up))])
    if master.snapshot is not None:
        page.add(
            "gpufarm_mesos_master_leads", "Whether the master leads.", [({}, float(leads(master.snapshot)))]
        )
        page.add(
            "gpufarm_mesos_requests_taken",
            "Whether the master, or the leader that it names, takes requests.",
            [({}, float(master.taken))],
        )
    if master.agents is not None:
        _add_agents(page, master.agents, (master.snapshot or {}).get(UNREACHABLE, 0))
    if master.quotas is not None:
        _add_quotas(page, master.quotas, master.roles or ())
    page.add("gpufarm_mesos_metrics_up", "Whether Mesos told all that was asked.", [({}, float(not problem))])
    page.add("gpufarm_mesos_metrics_last_run_timestamp_seconds", "When Mesos was asked.", [({}, round(now))])
    return page.text()


def _add_agents(page: Page, answer: Mapping[str, Any], unreachable: float) -> None:
    agents = read_agents(answer)
    states = Counter(one.state for one in agents)
    samples = [({"state": state}, float(number)) for state, number in sorted(states.items())]
    page.add("gpufarm_mesos_agents", "Agents.", [*samples, ({"state": "unreachable"}, unreachable)])
    usable = [one for one in agents if one.state == ACTIVE]
    _add_amounts(
        page, "resources", "Resources of active agents.", {(): sum_of([one.resources for one in usable])}
    )
    _add_amounts(
        page,
        "resources_allocated",
        "Resources of active agents that tasks and reservations hold.",
        {(): sum_of([one.allocated for one in usable])},
    )


def _add_quotas(page: Page, answer: Mapping[str, Any], roles: Sequence[Mapping[str, Any]]) -> None:
    quotas = read_quotas(answer)
    _add_amounts(
        page,
        "quota",
        "The most that a role may have.",
        {(("role", role),): quota.limits for role, quota in sorted(quotas.items())},
    )
    consumed = {one["name"]: (one.get("quota") or {}).get("consumed") or {} for one in roles}
    _add_amounts(
        page,
        "quota_consumed",
        "Resources of a role with a quota.",
        {(("role", role),): consumed.get(role, {}) for role in sorted(quotas)},
    )


def _add_amounts(
    page: Page, name: str, text: str, found: Mapping[tuple[tuple[str, str], ...], Amounts]
) -> None:
    page.add(
        f"gpufarm_mesos_{name}",
        text,
        [
            ({**dict(labels), "resource": resource}, value)
            for labels, amounts in found.items()
            for resource, value in sorted(amounts.items())
            if not isinstance(value, str)  # ranges and sets, such as ports
        ],
    )
