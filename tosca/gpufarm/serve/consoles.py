# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of the tasks of deployments, as workers have read it; a reading is asked for by a user."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from gpufarm import console
from gpufarm.serve.database import Database
from gpufarm.serve.offers import Offers
from gpufarm.serve.refusals import Conflict, Refused
from gpufarm.serve.statuses import Status
from gpufarm.serve.tables import Console, Deployment, Task

# Tasks of a deployment that are kept, and days for which one that is over is.
MOST, DAYS = 10, 30
# Seconds that a reading may take, after which its worker counts as lost, and in which no other one follows.
LONGEST, LOST, FRESH = 300.0, 420.0, 5.0
OVER = ("succeeded", "failed", "killed", "lost")


@dataclass(frozen=True)
class Shown:
    """Tasks of a deployment, as far as they are known.

    Attributes:
        waits: whether a reading was asked for that has not ended.
        read: time of the last reading that went well; 0 for none.
        failure: why the last reading did not go well; empty if it did.
        tasks: those that began last first.
    """

    waits: bool
    read: float
    failure: str
    tasks: list[Task]

    def task(self, id: str, node: str) -> Task | None:
        """Choose a task.

        Args:
            id: its id; empty for the one that began last.
            node: of the template; empty for any.

        Returns:
            The task; None if there is none.
        """
        return next((one for one in self.tasks if id in ("", one.id) and node in ("", one.node)), None)


class Consoles:
    """The output in a database, and the readings that were asked for."""

    def __init__(self, database: Database, offers: Offers) -> None:
        """Take the database.

        Args:
            database: with the tables.
            offers: the catalogue.
        """
        self._database = database
        self._with_console = {one.offer.name for one in offers.all() if console.nodes(one.topology)}

    def has(self, found: Deployment) -> bool:
        """Tell whether tasks of a deployment print something that can be read.

        Args:
            found: the deployment.

        Returns:
            True if a node of its template runs a container or a job on a cluster.
        """
        return found.template in self._with_console

    def show(self, found: Deployment) -> Shown:
        """Tell what is known; no machine is asked.

        Args:
            found: a deployment that the user may see.

        Returns:
            The tasks.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.reading() as session:
            known = session.get(Console, found.uuid)
            tasks = [*session.scalars(select(Task).where(Task.deployment == found.uuid))]
        tasks.sort(key=_order, reverse=True)
        if known is None:
            return Shown(False, 0.0, "", tasks)
        return Shown(known.asked > 0, known.read, known.failure, tasks)

    def ask(self, found: Deployment) -> None:
        """Ask for a reading, unless another one waits or has ended a moment ago.

        Args:
            found: a deployment that the user may see.

        Raises:
            Refused: its template runs no container and no job.
            Conflict: it is gone.
            Unavailable: the database does not answer.
        """
        if not self.has(found):
            raise Refused(f"deployment {found.uuid} has no container and no job that prints anything")
        now = time.time()
        with self._database.reserving() as session:
            if not _stays(session, found.uuid):
                raise Conflict(f"deployment {found.uuid} is gone, and its output with it")
            known = session.get(Console, found.uuid)
            if known is None:
                known = Console(deployment=found.uuid, asked=0.0, begun=0.0, read=0.0, failure="")
                session.add(known)
            if known.asked or now < known.read + FRESH:
                return
            known.asked = now

    def take(self) -> tuple[str, float] | None:
        """Begin the reading that was asked for first; only one worker gets it.

        Returns:
            The uuid of the deployment and the time, which `keep` and `failed` take; None if no reading waits.

        Raises:
            Unavailable: the database does not answer.
        """
        now = time.time()
        waits = (Console.asked > 0, Console.begun < now - LOST)
        with self._database.reading() as session:  # most looks find nothing, and lock nothing
            if session.scalar(select(Console.deployment).where(*waits).limit(1)) is None:
                return None
        with self._database.reserving() as session:
            wanted = select(Console).where(*waits).order_by(Console.asked).limit(1)
            found = session.scalar(wanted.with_for_update(skip_locked=True))
            if found is None:
                return None
            found.begun = now
            return found.deployment, now

    def keep(self, uuid: str, begun: float, answer: Mapping[str, Any]) -> None:
        """Keep what a reading has told; output that it could not read stays as it was.

        Args:
            uuid: of the deployment.
            begun: as `take` returned it.
            answer: ``tasks`` and ``silent``, as in `gpufarm.answers.Console`.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            known = _held(session, uuid, begun)
            if known is None:
                return
            now = time.time()
            kept = session.scalars(select(Task).where(Task.deployment == uuid))
            old = {(one.node, one.id): one for one in kept}
            told = {(entry["node"], entry["id"]): entry for entry in answer["tasks"]}
            for name, entry in told.items():
                session.add(_merged(old.get(name), uuid, entry, now))
            for name, one in old.items():
                if name not in told and one.node not in answer["silent"] and one.state not in OVER:
                    one.state, one.reason = "lost", "The cluster does not know it any more."
            session.flush()
            _limit(session, uuid)
            known.asked, known.begun = 0.0, 0.0
            known.failure = "; ".join(answer["silent"].values())
            if not answer["silent"]:
                known.read = now

    def release(self, uuid: str, begun: float) -> None:
        """Leave a reading to another worker, as this one stops.

        Args:
            uuid: of the deployment.
            begun: as `take` returned it.

        Raises:
            Unavailable: the database does not answer; then another worker takes it later.
        """
        with self._database.changing() as session:
            known = _held(session, uuid, begun)
            if known is not None:
                known.begun = 0.0

    def failed(self, uuid: str, begun: float, why: str) -> None:
        """Note that nothing could be read; what is known stays.

        Args:
            uuid: of the deployment.
            begun: as `take` returned it.
            why: a sentence.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            known = _held(session, uuid, begun)
            if known is not None:
                known.asked, known.begun, known.failure = 0.0, 0.0, why


def _stays(session: Session, uuid: str) -> bool:
    """Whether a deployment is there; it cannot go before the transaction ends."""
    wanted = select(Deployment.status).where(Deployment.uuid == uuid).with_for_update()
    return session.scalar(wanted) not in (None, Status.DELETE_COMPLETE)


def _held(session: Session, uuid: str, begun: float) -> Console | None:
    """The reading that a worker has begun, unless another worker has it by now or the deployment is gone."""
    if not _stays(session, uuid):
        return None
    known = session.scalar(select(Console).where(Console.deployment == uuid).with_for_update())
    return known if known is not None and known.begun == begun else None


def _merged(known: Task | None, uuid: str, entry: Mapping[str, Any], now: float) -> Task:
    """A task as it was told; output that could not be read stays as it was."""
    if known is not None and entry["state"] == "lost":
        entry = _remembered(known, entry)
    names = {"node": entry["node"], "id": entry["id"]}
    key = hashlib.sha256(json.dumps([*names.values()]).encode()).hexdigest()
    found = known or Task(deployment=uuid, key=key, **names, stdout="", stderr="", cut=[], read=0.0)
    for name in ("machine", "state", "reason", "begun", "ended", "unread"):
        setattr(found, name, entry[name])
    if not entry["unread"]:
        found.stdout, found.stderr, found.cut, found.read = (
            entry["stdout"],
            entry["stderr"],
            entry["cut"],
            now,
        )
    return found


def _remembered(known: Task, entry: Mapping[str, Any]) -> dict[str, Any]:
    """A lost task with what is known of it: a cluster that has forgotten it tells no times."""
    places = {name: entry[name] or getattr(known, name) for name in ("machine", "begun", "ended")}
    ended = known.state in OVER and known.state != "lost"
    return {**entry, **places, **({"state": known.state, "reason": known.reason} if ended else {})}


def _order(task: Task) -> float:
    return task.begun or float("inf")


def _limit(session: Session, uuid: str) -> None:
    """Forget the oldest of too many tasks."""
    found = sorted(session.scalars(select(Task).where(Task.deployment == uuid)), key=_order, reverse=True)
    for one in found[MOST:]:
        session.delete(one)


def expire(database: Database) -> None:
    """Forget tasks that were over long ago, and those without any time whose output was read long ago.

    Args:
        database: with the tables.

    Raises:
        Unavailable: the database does not answer.
    """
    before = time.time() - DAYS * 86_400
    over = or_(Task.ended > 0, Task.state.in_(OVER))
    old = (Task.ended < before, Task.begun < before)
    timed = or_(Task.begun > 0, Task.ended > 0)
    with database.changing() as session:
        session.execute(delete(Task).where(over, *old, or_(timed, Task.read < before)))


def forget(session: Session, uuid: str) -> None:
    """Forget the tasks of a deployment that is gone.

    Args:
        session: the transaction.
        uuid: of the deployment.
    """
    session.execute(delete(Task).where(Task.deployment == uuid))
    session.execute(delete(Console).where(Console.deployment == uuid))
