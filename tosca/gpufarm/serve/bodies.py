# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployments and resources as JSON, as INDIGO's PaaS Orchestrator writes them. Pure."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from gpufarm.serve import statuses
from gpufarm.serve.consoles import Shown
from gpufarm.serve.tables import Deployment, Task

PROVIDER = "gpufarm"


def moment(seconds: float) -> str:
    """Write a time.

    Args:
        seconds: since 1970, in UTC.

    Returns:
        The form that the dashboard puts into its database unchanged: ``2026-01-31T12:00+0000``.
    """
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M%z")


def link(rel: str, href: str) -> dict[str, str]:
    """Write a link.

    Args:
        rel: its meaning.
        href: its URL.

    Returns:
        The entry of a list ``links``.
    """
    return {"rel": rel, "href": href}


def deployment(found: Deployment, base: str) -> dict[str, Any]:
    """Write a deployment.

    Args:
        found: the deployment.
        base: public URL of this service, without a slash at its end.

    Returns:
        The object; entries without a value are left out, except those that clients read unasked.
    """
    status = statuses.Status(found.status)
    here = f"{base}/deployments/{found.uuid}"
    written = {
        "uuid": found.uuid,
        "creationTime": moment(found.created),
        "updateTime": moment(found.updated),
        "physicalId": found.uuid,
        "status": status.value,
        "statusReason": found.reason or None,
        "outputs": found.outputs,
        "task": statuses.task(status),
        "callback": found.callback or None,
        "userGroup": found.user_group,
        "cloudProviderName": PROVIDER,
        "createdBy": {"issuer": found.issuer, "subject": found.subject},
        "links": [
            link("self", here),
            link("resources", f"{here}/resources"),
            link("template", f"{here}/template"),
        ],
    }
    return {name: value for name, value in written.items() if value is not None}


def resource_id(of: str, node: str) -> str:
    """Name a resource.

    Args:
        of: uuid of the deployment.
        node: the instance of a node of the template.

    Returns:
        A uuid, which is always the same.
    """
    return str(uuid.uuid5(uuid.UUID(of), node))


def resource(entry: dict[str, Any], found: Deployment, base: str) -> dict[str, Any]:
    """Write a resource.

    Args:
        entry: as the last run returned it.
        found: its deployment.
        base: public URL of this service, without a slash at its end.

    Returns:
        The object.
    """
    own = resource_id(found.uuid, entry["node"])
    here = f"{base}/deployments/{found.uuid}"
    return {
        "uuid": own,
        "creationTime": moment(found.created),
        "updateTime": moment(found.updated),
        "physicalId": entry.get("host") or entry["node"],
        "state": entry["state"],
        "toscaNodeType": entry["type"],
        "toscaNodeName": entry["node"],
        "requiredBy": [resource_id(found.uuid, name) for name in entry.get("required_by", [])],
        "metadata": entry.get("metadata", {}),
        "links": [link("deployment", here), link("self", f"{here}/resources/{own}")],
    }


def console(shown: Shown, *, output: bool) -> dict[str, Any]:
    """Write how tasks went, and what they have printed.

    Args:
        shown: what is known.
        output: whether to give what they have printed.

    Returns:
        The object; times are in ISO 8601, and None for not yet.
    """
    return {
        "waits": shown.waits,
        "read": _second(shown.read),
        "failure": shown.failure,
        "tasks": [_task(one, output=output) for one in shown.tasks],
    }


def _task(task: Task, *, output: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: getattr(task, name) for name in ("id", "node", "machine", "state", "reason", "unread")
    }
    found |= {name: _second(getattr(task, name)) for name in ("begun", "ended", "read")}
    return found | ({"stdout": task.stdout, "stderr": task.stderr, "cut": task.cut} if output else {})


def _second(seconds: float) -> str | None:
    if not seconds:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")
