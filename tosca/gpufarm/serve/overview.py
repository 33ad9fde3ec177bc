# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists for administrators, of all users of their issuer: the queue of runs, and the machines."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from gpufarm.serve import audit
from gpufarm.serve.database import Database
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Forbidden
from gpufarm.serve.statuses import Status
from gpufarm.serve.tables import Deployment, Run

# Runs and machines that are listed at most.
MOST = 500


@dataclass(frozen=True)
class Waiting:
    """A run that waits, or that a worker carries out.

    Attributes:
        deployment, template, subject: of the deployment and its owner.
        kind: of the run.
        running: whether a worker has it.
        worker: that has it, or had it last; empty for none.
        attempt: number of workers that have taken it.
        silent: whether its worker has shown no sign of life for too long.
        since: time at which it began, or was requested.
    """

    deployment: str
    template: str
    subject: str
    kind: str
    running: bool
    worker: str
    attempt: int
    silent: bool
    since: float


@dataclass(frozen=True)
class Held:
    """A machine of the pool that a deployment holds.

    Attributes:
        host: its name in the pool.
        node: for which it was taken.
        deployment, template, status, subject, group: of the deployment and its owner.
    """

    host: str
    node: str
    deployment: str
    template: str
    status: str
    subject: str
    group: str


class Overview:
    """Lists for administrators; each look is in the audit."""

    def __init__(self, database: Database) -> None:
        """Take the database.

        Args:
            database: with the tables.
        """
        self._database = database

    def queue(self, user: User, now: float) -> tuple[list[Waiting], int]:
        """List the runs that are not over, in the order in which workers take them.

        Args:
            user: an administrator.
            now: present time.

        Returns:
            Those of deployments of the issuer, and the number of those of other issuers.

        Raises:
            Forbidden: the user is no administrator.
            Unavailable: the database does not answer.
        """
        self._note(user, "list runs")
        joined = select(Run, Deployment.template, Deployment.subject).join(Deployment)
        open_ones = Run.state.in_(("queued", "running"))
        own = (open_ones, Deployment.issuer == user.issuer)
        others = select(func.count()).select_from(Run).join(Deployment)
        with self._database.reading() as session:
            number = session.scalar(others.where(open_ones, Deployment.issuer != user.issuer)) or 0
            rows = session.execute(joined.where(*own).order_by(Run.state.desc(), Run.id).limit(MOST)).all()
        return [_waiting(run, template, subject, now) for run, template, subject in rows], number

    def machines(self, user: User) -> list[Held]:
        """List the machines that deployments of the issuer hold, as their last runs have told.

        Args:
            user: an administrator.

        Returns:
            The machines by name.

        Raises:
            Forbidden: the user is no administrator.
            Unavailable: the database does not answer.
        """
        self._note(user, "list machines")
        which = (Deployment.issuer == user.issuer, Deployment.status != Status.DELETE_COMPLETE)
        with self._database.reading() as session:
            found = session.scalars(select(Deployment).where(*which).order_by(Deployment.created)).all()
        held = [
            Held(
                str(entry["host"]),
                str(entry["node"]),
                one.uuid,
                one.template,
                one.status,
                one.subject,
                one.user_group,
            )
            for one in found
            for entry in one.resources
            if "host" in entry
        ]
        return sorted(held, key=lambda machine: (machine.host, machine.deployment))[:MOST]

    def _note(self, user: User, action: str) -> None:
        if not user.administrator:
            raise Forbidden("only administrators may see this page; go back to your deployments")
        with self._database.changing() as session:
            audit.note(session, user, action)


def _waiting(run: Run, template: str, subject: str, now: float) -> Waiting:
    running = run.state == "running"
    return Waiting(
        deployment=run.deployment,
        template=template,
        subject=subject,
        kind=run.kind,
        running=running,
        worker=run.worker,
        attempt=run.attempt,
        silent=running and run.lease < now,
        since=run.began or run.created,
    )
