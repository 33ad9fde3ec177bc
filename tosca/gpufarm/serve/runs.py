# SPDX-License-Identifier: GPL-3.0-or-later
"""The queue of runs, as workers see it: claimed by a lease, which signs of life prolong."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from gpufarm.serve import consoles, outbox, statuses
from gpufarm.serve.database import Database, Unavailable
from gpufarm.serve.deployments import cancel, forget
from gpufarm.serve.statuses import Kind, Status
from gpufarm.serve.tables import Deployment, Run

# A run that ends three workers would end a fourth one, too.
ATTEMPTS = 3
# Letters of the log of a run that are kept; the beginning of a longer one is cut off.
LOG = 1_000_000


@dataclass(frozen=True)
class Claim:
    """A run that a worker holds.

    Attributes:
        id: of the run.
        attempt: which one this is; 1 for the first.
        worker: that holds it.
        kind: of the run.
        began: time at which the first attempt began.
        deployment: to which it belongs, as it was when the run was claimed.
        force: whether a removal gives up machines that the pool lacks.
    """

    id: int
    attempt: int
    worker: str
    kind: Kind
    began: float
    deployment: Deployment
    force: bool


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        well: whether all is done.
        reason: why not, as a sentence, or what was given up; empty for nothing.
        outputs, resources: of the deployment, if all is done.
        held: nodes whose machines a removal that failed has not freed; None if that is not known.
        log: the last lines of progress.
    """

    well: bool
    reason: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    resources: list[dict[str, Any]] = field(default_factory=list)
    held: list[str] | None = None
    log: str = ""


class Lost(Exception):
    """Another worker holds the run by now, or it is over."""


class Runs:
    """The runs of a database."""

    def __init__(self, database: Database, base: str) -> None:
        """Take the database.

        Args:
            database: with the tables.
            base: public URL of this service, without a slash at its end.
        """
        self._database = database
        self._base = base

    def claim(self, worker: str, lease: float) -> Claim | None:
        """Take a run whose worker is lost, or else the oldest one that waits.

        Args:
            worker: name of the worker, which no other one has.
            lease: seconds for which the run is held.

        Returns:
            The run; None if there is none to do.

        Raises:
            Unavailable: the database does not answer, or another worker was faster.
        """
        with self._database.changing() as session:
            self._give_up(session)
            now = time.time()
            other = aliased(Run)
            busy = select(other.id).where(other.deployment == Run.deployment, other.state == "running")
            for which in (
                (Run.state == "running", Run.lease < now),
                (Run.state == "queued", ~busy.exists()),
            ):
                wanted = select(Run).where(*which).order_by(Run.id).limit(1)
                found = session.scalar(wanted.with_for_update(skip_locked=True))
                if found is not None:
                    break
            else:
                return None
            deployment = session.get_one(Deployment, found.deployment)
            found.state, found.worker, found.lease = "running", worker, now + lease
            found.attempt += 1
            found.began = found.began or now
            try:
                session.flush()
            except IntegrityError as error:  # of `ix_runs_one_at_a_time`
                raise Unavailable("another worker has just begun a run of this deployment") from error
            kind = Kind(found.kind)
            return Claim(found.id, found.attempt, worker, kind, found.began, deployment, found.force)

    def beat(self, claim: Claim, lease: float, log: str = "") -> bool:
        """Prolong the lease and note progress.

        Args:
            claim: the run.
            lease: seconds from now for which it is held.
            log: new lines of progress.

        Returns:
            Whether the run shall be stopped.

        Raises:
            Lost: the run is no longer held.
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            found = self._held(session, claim)
            found.lease = time.time() + lease
            _write(found, log)
            return found.cancel

    def finish(self, claim: Claim, ending: Ending) -> None:
        """Note how a run ended.

        Args:
            claim: the run.
            ending: how it ended.

        Raises:
            Lost: the run is no longer held.
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            deployment = _locked(session, claim.deployment.uuid)
            found = self._held(session, claim)
            _write(found, ending.log)
            self._end(session, deployment, found, ending)

    def release(self, claim: Claim, log: str = "") -> None:
        """Give a run back to the queue, as this worker stops; that attempt does not count.

        Args:
            claim: the run.
            log: new lines of progress.

        Raises:
            Lost: the run is no longer held.
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            found = self._held(session, claim)
            _write(found, log)
            found.lease = 0.0
            # an attempt of 0 would mean that nothing of it can be on any machine
            found.attempt = max(1, found.attempt - 1)

    def counts(self) -> dict[str, int]:
        """Count the runs, for metrics.

        Returns:
            The number by state.
        """
        with self._database.reading() as session:
            found = select(Run.state, func.count()).group_by(Run.state)
            return dict(session.execute(found).all())

    def _held(self, session: Session, claim: Claim) -> Run:
        found = session.scalar(select(Run).where(Run.id == claim.id).with_for_update())
        if found is None or (found.state, found.worker, found.attempt) != (
            "running",
            claim.worker,
            claim.attempt,
        ):
            raise Lost
        return found

    def _give_up(self, session: Session) -> None:
        """End the runs whose workers were lost too often, or that nobody wants any more."""
        over = (Run.cancel, Run.attempt >= ATTEMPTS)
        stale = (Run.state == "running", Run.lease < time.time(), or_(*over))
        for id, uuid in session.execute(select(Run.id, Run.deployment).where(*stale).order_by(Run.id)).all():
            deployment = _locked(session, uuid)
            run = session.scalar(select(Run).where(Run.id == id, *stale).with_for_update())
            if run is None:
                continue  # another worker was faster
            if run.cancel:
                run.state, run.ended = "cancelled", time.time()
            else:
                why = f"the worker was lost {run.attempt} times during this run; see the log of the workers"
                self._end(session, deployment, run, Ending(well=False, reason=why))
        session.flush()

    def _end(self, session: Session, found: Deployment, run: Run, ending: Ending) -> None:
        kind = Kind(run.kind)
        before = Status(found.status)
        after = statuses.ended(before, kind, well=ending.well, cancelled=run.cancel)
        run.state = "done" if ending.well else "cancelled" if run.cancel else "failed"
        run.ended, run.reason = time.time(), ending.reason
        if ending.held is not None:
            found.machines = min(found.machines, len(ending.held))
            found.resources = [
                entry for entry in found.resources if "host" not in entry or entry["node"] in ending.held
            ]
        if after is before:
            return
        found.status, found.updated = after, time.time()
        found.reason = ending.reason
        if ending.well:
            found.outputs, found.resources = ending.outputs, _with_former(found.resources, ending.resources)
            if run.machines is not None:
                found.machines = run.machines
        if after is Status.DELETE_COMPLETE:
            forget(found)
            cancel(session, found.uuid)
            consoles.forget(session, found.uuid)
        outbox.add(session, found, self._base)


def _locked(session: Session, uuid: str) -> Deployment:
    """Lock a deployment. All transactions lock it before its runs, so none waits in a circle."""
    return session.scalars(select(Deployment).where(Deployment.uuid == uuid).with_for_update()).one()


def _with_former(
    former: Iterable[dict[str, Any]], resources: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Keep what is known of machines at which a run that had nothing to do did not look."""
    known = {(one.get("node"), one.get("host")): one.get("metadata") for one in former}
    kept = ((one, known.get((one.get("node"), one.get("host")))) for one in resources)
    return [{"metadata": told, **one} if told else one for one, told in kept]


def _write(run: Run, log: str) -> None:
    if log:
        run.log = (run.log + log)[-LOG:]
