# SPDX-License-Identifier: GPL-3.0-or-later
"""Forgets deployments that are long gone. The audit stays: it is the only witness of what they did."""

from __future__ import annotations

import time

from sqlalchemy import delete, select

from gpufarm.serve.database import Database
from gpufarm.serve.statuses import Status
from gpufarm.serve.tables import Callback, Console, Deployment, Run, Task

DAY = 86_400
# Deployments that one transaction deletes: requests wait for it.
AT_ONCE = 100


def forget(database: Database, days: int) -> int:
    """Delete the rows of deployments that are gone, with those of their runs and callbacks.

    Args:
        database: with the tables.
        days: since the removal; 0 keeps all.

    Returns:
        The number of deployments.

    Raises:
        Unavailable: the database does not answer.
    """
    total = 0
    before = time.time() - days * DAY
    gone = (Deployment.status == Status.DELETE_COMPLETE, Deployment.updated < before)
    while days:
        with database.changing() as session:
            found = [*session.scalars(select(Deployment.uuid).where(*gone).limit(AT_ONCE))]
            for table in (Callback, Console, Run, Task):
                session.execute(delete(table).where(table.deployment.in_(found)))
            session.execute(delete(Deployment).where(Deployment.uuid.in_(found)))
        total += len(found)
        if len(found) < AT_ONCE:
            break
    return total
