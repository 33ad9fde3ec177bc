# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages that wait to be posted, in the transaction that sets a final status."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from gpufarm.serve import bodies, statuses
from gpufarm.serve.database import Database
from gpufarm.serve.tables import Callback, Deployment

# Attempts, and seconds between the first two; the time doubles each time, so it ends after half an hour.
ATTEMPTS = 8
PAUSE = 15.0


def add(session: Session, found: Deployment, base: str) -> None:
    """Note that the status has to be posted, if it is final and the owner wants that.

    Args:
        session: the transaction.
        found: the deployment.
        base: public URL of this service, without a slash at its end.
    """
    if found.callback and statuses.Status(found.status) in statuses.FINAL:
        session.add(
            Callback(
                deployment=found.uuid,
                url=found.callback,
                body=bodies.deployment(found, base),
                due=time.time(),
            )
        )


@dataclass(frozen=True)
class Message:
    """A message to post now."""

    id: int
    url: str
    body: dict[str, Any]
    attempt: int


class Outbox:
    """The messages of a database."""

    def __init__(self, database: Database) -> None:
        """Take the database.

        Args:
            database: with the tables.
        """
        self._database = database

    def take(self) -> Message | None:
        """Take the next message that is due. Until it is `settled`, other workers leave it alone for a while.

        A message waits until the older ones of its deployment to the same address are sent or have failed: an
        older status that came last would be taken for the present one. As attempts end, so does the wait.

        Returns:
            The message; None if none is due.
        """
        with self._database.changing() as session:
            older = aliased(Callback)
            earlier = select(older.id).where(
                older.deployment == Callback.deployment,
                older.url == Callback.url,
                older.state == "waiting",
                older.id < Callback.id,
            )
            ready = (Callback.state == "waiting", Callback.due <= time.time(), ~earlier.exists())
            due = select(Callback).where(*ready)
            found = session.scalar(due.order_by(Callback.id).limit(1).with_for_update(skip_locked=True))
            if found is None:
                return None
            found.attempt += 1
            found.due = time.time() + PAUSE * 2 ** (found.attempt - 1)
            return Message(found.id, found.url, found.body, found.attempt)

    def settled(self, message: Message, failure: str = "", *, final: bool = False) -> None:
        """Note how an attempt ended.

        Args:
            message: as `take` returned it.
            failure: why it failed; empty if it was posted.
            final: whether another attempt would fail, too.
        """
        with self._database.changing() as session:
            found = session.get(Callback, message.id)
            if found is None or found.state != "waiting":
                return
            found.failure = failure
            if not failure:
                found.state = "sent"
            elif final or found.attempt >= ATTEMPTS:
                found.state = "failed"
