# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a deployment, in the words of INDIGO's PaaS Orchestrator. Pure."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The purpose of a run."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Status(StrEnum):
    """The status of a deployment."""

    CREATE_IN_PROGRESS = "CREATE_IN_PROGRESS"
    CREATE_COMPLETE = "CREATE_COMPLETE"
    CREATE_FAILED = "CREATE_FAILED"
    UPDATE_IN_PROGRESS = "UPDATE_IN_PROGRESS"
    UPDATE_COMPLETE = "UPDATE_COMPLETE"
    UPDATE_FAILED = "UPDATE_FAILED"
    DELETE_IN_PROGRESS = "DELETE_IN_PROGRESS"
    DELETE_COMPLETE = "DELETE_COMPLETE"
    DELETE_FAILED = "DELETE_FAILED"
    UNKNOWN = "UNKNOWN"


FINAL = frozenset(status for status in Status if not status.endswith("_IN_PROGRESS"))
UPDATABLE = frozenset({Status.CREATE_COMPLETE, Status.UPDATE_COMPLETE, Status.UPDATE_FAILED})
UNDELETABLE = frozenset({Status.DELETE_IN_PROGRESS, Status.DELETE_COMPLETE})


def begun(kind: Kind) -> Status:
    """Tell the status during a run.

    Args:
        kind: of the run.

    Returns:
        The status.
    """
    return Status(f"{kind}_IN_PROGRESS")


def task(status: Status) -> str:
    """Name the present task, as clients show it.

    Args:
        status: of the deployment.

    Returns:
        ``NONE`` while nothing runs.
    """
    return "NONE" if status in FINAL else "DEPLOY" if status is not Status.DELETE_IN_PROGRESS else "UNDEPLOY"


def ended(status: Status, kind: Kind, *, well: bool, cancelled: bool) -> Status:
    """Tell the status after a run.

    Args:
        status: of the deployment at the end of the run.
        kind: of the run.
        well: whether the run has done all.
        cancelled: whether a later request has taken its place.

    Returns:
        The status. A finished removal is the truth, also if it was given up meanwhile; every other run that
        was cancelled leaves the status to the request that cancelled it.
    """
    if kind is Kind.DELETE and well:
        return Status.DELETE_COMPLETE
    if cancelled or status is not begun(kind):
        return status
    return Status(f"{kind}_{'COMPLETE' if well else 'FAILED'}")
