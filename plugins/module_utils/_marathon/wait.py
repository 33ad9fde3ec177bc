# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a deployment of Marathon does not come to its end, in words. No I/O.

Sources: mesosphere/marathon, releases/1.11: NoOfferMatchReason.scala (reasons), docs/rest-api (queue),
docs/recovery-and-backoff.md, docs/preferential-gpu-scheduling.md; apache/mesos, docs/gpu-support.md (agents
with GPUs are offered to frameworks with the capability only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Each says what is wrong with the offers that were declined for it.
REASONS = {
    "UnfulfilledRole": "{n} not reserved for a role that it accepts",
    "UnfulfilledConstraint": "{n} do not meet its constraints{constraints}",
    "NoCorrespondingReservationFound": "{n} without the reservation that its volumes need",
    "AgentMaintenance": "{n} on agents that go into maintenance",
    "AgentUnavailable": "{n} on agents that go into maintenance",
    "InsufficientCpus": "{n} with fewer than {cpus} CPUs",
    "InsufficientMemory": "{n} with less than {mem} MB of memory",
    "InsufficientDisk": "{n} with less than {disk} MB of disk",
    "InsufficientGpus": "{n} with fewer than {gpus} GPUs",
    "InsufficientPorts": "{n} without the ports that it asks for",
    "DeclinedScarceResources": (
        "{n} on agents with GPUs, which are kept for apps that use them (label GPU_SCHEDULING_BEHAVIOR)"
    ),
}


def waiting(item: Mapping[str, Any]) -> str:
    """Return why an app of the queue waits, as the end of a sentence that begins with its id.

    Args:
        item: as GET /v2/queue tells it.
    """
    app = item.get("app") or item.get("pod") or {}
    delay = item.get("delay") or {}
    if not delay.get("overdue", True) and delay.get("timeLeftSeconds", 0) > 0:
        return f"is tried again in {delay['timeLeftSeconds']} seconds, after its last tasks have failed"
    summary = item.get("processedOffersSummary") or {}
    rows = summary.get("rejectSummaryLastOffers") or []
    declined = {row["reason"]: row["declined"] for row in rows if row.get("declined")}
    role = item.get("role") or app.get("role") or "*"
    if not summary.get("processedOffersCount") or not rows:
        return (
            f"waits for {item.get('count', 1)} more instances, and Mesos offers nothing to role {role}:"
            " all is in use, its quota is used up, or agents with GPUs are kept from a Marathon without"
            " the feature gpu_resources"
        )
    if not declined:
        return f"waits for {item.get('count', 1)} more instances, which are about to start"
    total = max(row.get("processed", 0) for row in rows)
    parts = [_reason(reason, count, app) for reason, count in declined.items()]
    return f"waits for {item.get('count', 1)} more instances; of {total} offers to role {role} {_join(parts)}"


def stalled(app: Mapping[str, Any], item: Mapping[str, Any] | None) -> str:
    """Return why a deployment of an app is not done yet, as the end of a sentence that begins with its id.

    Args:
        app: as GET /v2/apps tells it.
        item: what the queue has of it, None for nothing.
    """
    failure: Mapping[str, Any] = app.get("lastTaskFailure") or {}
    if failure and (item is None or app.get("tasksRunning", 0) < app.get("instances", 1)):
        words = str(failure.get("message") or failure.get("state", "")).rstrip(".")
        said = f"has tasks that end ({words} on {failure.get('host', 'an agent')})"
        return said + "; " + waiting(item) if item else said
    if item is not None:
        return waiting(item)
    if app.get("tasksUnhealthy"):
        return f"has {app['tasksUnhealthy']} instances that fail their health checks"
    running, wanted = app.get("tasksRunning", 0), app.get("instances", 1)
    if app.get("healthChecks") and app.get("tasksHealthy", 0) < wanted:
        return f"has {app.get('tasksHealthy', 0)} of {wanted} instances that pass their health checks"
    return f"has {running} of {wanted} instances running and {app.get('tasksStaged', 0)} starting"


def _reason(reason: str, count: int, app: Mapping[str, Any]) -> str:
    values: dict[str, Any] = {name: _number(app.get(name, 0)) for name in ("cpus", "mem", "disk", "gpus")}
    rules = [" ".join(map(str, rule)) for rule in app.get("constraints") or ()]
    values["constraints"] = f" ({', '.join(rules)})" if rules else ""
    return REASONS.get(reason, "{n} declined for " + reason).format(n=count, **values)


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _join(parts: Any) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
