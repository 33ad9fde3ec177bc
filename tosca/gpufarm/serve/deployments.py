# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of users: each method is one transaction, with the quotas and the audit in it."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session, defer

from gpufarm.serve import audit, consoles, outbox, statuses
from gpufarm.serve.database import Database
from gpufarm.serve.people import Person, User
from gpufarm.serve.quotas import Quota, Quotas
from gpufarm.serve.refusals import Conflict, Forbidden, Missing
from gpufarm.serve.statuses import Kind, Status
from gpufarm.serve.tables import Deployment, Run

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# A page has up to a thousand deployments, so what it does not show stays in the database.
_LARGE = tuple(
    defer(column, raiseload=True)
    for column in (Deployment.text, Deployment.parameters, Deployment.secrets, Deployment.resources)
)


@dataclass(frozen=True)
class Wanted:
    """A checked request.

    Attributes:
        template: name of the template in the catalogue.
        text: the template as the client sent it.
        machines: number that the deployment will hold.
        timeout: of each run, in minutes.
        parameters: values of the inputs, without the secrets.
        secrets: sealed values of the secret inputs; empty for none.
        user_group: the active group; empty for none.
        callback: URL; empty for none.
    """

    template: str
    text: str
    machines: int
    timeout: int
    parameters: dict[str, Any] = field(default_factory=dict)
    secrets: str = ""
    user_group: str = ""
    callback: str = ""


@dataclass(frozen=True)
class Filter:
    """A choice of deployments.

    Attributes:
        owner: their owner; None for those of all users of the issuer.
        group: their active group; None for any.
        without: statuses to leave out.
    """

    owner: Person | None
    group: str | None = None
    without: Collection[str] = ()


@dataclass(frozen=True)
class Use:
    """The part of its quota that a user or a group has.

    Attributes:
        group: name of the group; empty for the user.
        deployments, machines: that it has.
        quota: how much it may have.
    """

    group: str
    deployments: int
    machines: int
    quota: Quota


class Deployments:
    """The deployments of a database."""

    def __init__(self, database: Database, quotas: Quotas, base: str) -> None:
        """Take the database.

        Args:
            database: with the tables.
            quotas: limits of users and groups.
            base: public URL of this service, without a slash at its end.
        """
        self._database = database
        self._quotas = quotas
        self._base = base

    def create(self, user: User, wanted: Wanted) -> Deployment:
        """Reserve a new deployment and queue its first run.

        Args:
            user: its owner.
            wanted: the request.

        Returns:
            The deployment.

        Raises:
            Forbidden: a quota is exhausted.
            Unavailable: the database does not answer.
        """
        now = time.time()
        made = Deployment(
            uuid=str(uuid.uuid4()),
            issuer=user.issuer,
            subject=user.subject,
            user_group=wanted.user_group,
            status=statuses.begun(Kind.CREATE),
            reason="",
            template=wanted.template,
            text=wanted.text,
            parameters=wanted.parameters,
            secrets=wanted.secrets,
            machines=wanted.machines,
            outputs={},
            resources=[],
            callback=wanted.callback,
            timeout=wanted.timeout,
            created=now,
            updated=now,
        )
        with self._database.reserving() as session:
            self._reserve(session, made, wanted.machines)
            session.add(made)
            session.flush()
            session.add(Run(deployment=made.uuid, kind=Kind.CREATE, created=now))
            audit.note(session, user, "create", made.uuid, f"template {wanted.template}")
        return made

    def find(self, user: User, uuid: str, action: str = "read") -> Deployment:
        """Find a deployment that the user may see; a look of an administrator is noted.

        Args:
            user: the user.
            uuid: of the deployment.
            action: word for the audit.

        Returns:
            The deployment.

        Raises:
            Missing: there is none that the user may see.
            Unavailable: the database does not answer.
        """
        with self._database.reading() as session:
            found = self._visible(session, user, uuid)
        if found.subject != user.subject:
            with self._database.changing() as session:
                audit.note(session, user, action, uuid, f"owner {found.subject}")
        return found

    def page(self, user: User, chosen: Filter, page: int, size: int) -> tuple[list[Deployment], int]:
        """List deployments, the newest first; a look of an administrator is noted.

        Args:
            user: the user.
            chosen: which deployments.
            page: number of the page, counted from 0.
            size: number of deployments on a page.

        Returns:
            The deployments on the page, without what no list shows, and the number of all.

        Raises:
            Forbidden: they are not the user's own, and the user is no administrator of their issuer.
            Unavailable: the database does not answer.
        """
        owner = chosen.owner
        issuer = owner.issuer if owner else user.issuer
        own = owner is not None and user.issuer == issuer and user.subject == owner.subject
        if not own and not (user.administrator and issuer == user.issuer):
            raise Forbidden("only administrators may list deployments of others; add createdBy=me")
        which: list[ColumnElement[bool]] = [Deployment.issuer == issuer]
        if owner:
            which.append(Deployment.subject == owner.subject)
        if chosen.group is not None:
            which.append(Deployment.user_group == chosen.group)
        if chosen.without:
            which.append(Deployment.status.not_in(chosen.without))
        order = (Deployment.created.desc(), Deployment.uuid)
        with self._database.reading() as session:
            total = session.scalar(select(func.count()).select_from(Deployment).where(*which)) or 0
            chosen_page = select(Deployment).where(*which).order_by(*order).offset(page * size).limit(size)
            found = [*session.scalars(chosen_page.options(*_LARGE))]
        if not own:
            with self._database.changing() as session:
                audit.note(session, user, "list", detail=f"owner {owner.subject if owner else '(all)'}")
        return found, total

    def log(self, uuid: str) -> str:
        """Read the progress of all runs of a deployment.

        Args:
            uuid: of a deployment that the user may see.

        Returns:
            The lines, the oldest first.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.reading() as session:
            runs = select(Run.log).where(Run.deployment == uuid).order_by(Run.id)
            return "".join(session.scalars(runs))

    def last_lines(self, uuid: str, most: int) -> tuple[list[str], bool]:
        """Read the end of the progress of a deployment; no more runs are read than have these lines.

        Args:
            uuid: of a deployment that the user may see.
            most: number of lines.

        Returns:
            The lines, the oldest first, and whether there are more before them.

        Raises:
            Unavailable: the database does not answer.
        """
        found: list[str] = []
        runs = select(Run.log).where(Run.deployment == uuid).order_by(Run.id.desc())
        with self._database.reading() as session:
            for log in session.scalars(runs.execution_options(yield_per=1)):
                found = log.splitlines() + found
                if len(found) > most:
                    break
        return found[-most:], len(found) > most

    def update(self, user: User, seen: Deployment, wanted: Wanted) -> None:
        """Change the values of a deployment and queue a run.

        Args:
            user: the user.
            seen: the deployment on which the request is based.
            wanted: the request, with the values that stay.

        Raises:
            Missing: there is no such deployment that the user may see.
            Conflict: it is in no status that allows this, or another request has changed it meanwhile.
            Forbidden: a quota is exhausted.
            Unavailable: the database does not answer.
        """
        with self._database.reserving() as session:
            found = self._visible(session, user, seen.uuid, lock=True)
            if found.status not in statuses.UPDATABLE:
                raise Conflict(
                    f"deployment {found.uuid} is in {found.status}; wait for {Status.CREATE_COMPLETE}, "
                    f"{Status.UPDATE_COMPLETE} or {Status.UPDATE_FAILED}"
                )
            if found.updated != seen.updated:
                raise Conflict(f"deployment {found.uuid} was changed by another request; try again")
            if wanted.machines > found.machines:
                self._reserve(session, found, wanted.machines)
                found.machines = wanted.machines
            found.parameters, found.secrets = wanted.parameters, wanted.secrets
            found.timeout, found.callback = wanted.timeout, wanted.callback
            _begin(session, found, Kind.UPDATE, wanted.machines)
            audit.note(session, user, "update", found.uuid, _owned_by(found, user))

    def delete(self, user: User, uuid: str, *, force: bool = False) -> None:
        """Cancel what runs, and queue the removal. A deployment that no worker has begun is gone at once.

        Args:
            user: the user.
            uuid: of the deployment.
            force: whether to give up machines that the pool lacks; only administrators can.

        Raises:
            Missing: there is no such deployment that the user may see.
            Conflict: it is being removed already, or gone.
            Unavailable: the database does not answer.
        """
        forced = force and user.administrator
        with self._database.changing() as session:
            found = self._visible(session, user, uuid, lock=True)
            if found.status in statuses.UNDELETABLE:
                raise Conflict(f"deployment {uuid} is in {found.status}; it needs no second request")
            cancel(session, uuid)
            begun = select(func.count()).where(Run.deployment == uuid, Run.attempt > 0)
            if session.scalar(begun):
                _begin(session, found, Kind.DELETE, force=forced)
            else:
                found.status, found.updated = Status.DELETE_COMPLETE, time.time()
                forget(found)
                consoles.forget(session, uuid)
                outbox.add(session, found, self._base)
            audit.note(session, user, "force delete" if forced else "delete", uuid, _owned_by(found, user))

    def reset(self, user: User, uuid: str) -> None:
        """Give up a removal that does not end, so that it can be requested again.

        Args:
            user: the user.
            uuid: of the deployment.

        Raises:
            Missing: there is no such deployment that the user may see.
            Conflict: it is not being removed.
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            found = self._visible(session, user, uuid, lock=True)
            if found.status != Status.DELETE_IN_PROGRESS:
                raise Conflict(
                    f"deployment {uuid} is in {found.status}; only {Status.DELETE_IN_PROGRESS} can be reset"
                )
            cancel(session, uuid)
            found.status, found.updated = Status.DELETE_FAILED, time.time()
            found.reason = "the removal was given up by a request; delete the deployment again"
            outbox.add(session, found, self._base)
            audit.note(session, user, "reset", uuid, _owned_by(found, user))

    def use(self, user: User) -> list[Use]:
        """Tell how much a user and the groups of the user have.

        Args:
            user: the user.

        Returns:
            The user's own, and that of each group with a quota.

        Raises:
            Unavailable: the database does not answer.
        """
        groups = sorted(name for name in user.groups if self._quotas.limits(name))
        parties = [("", Deployment.subject == user.subject, self._quotas.user)]
        parties += [(name, Deployment.user_group == name, self._quotas.of_group(name)) for name in groups]
        with self._database.reading() as session:
            return [Use(name, *_held(session, user.issuer, whose), quota) for name, whose, quota in parties]

    def counts(self) -> dict[str, int]:
        """Count the deployments, for metrics.

        Returns:
            The number by status.
        """
        with self._database.reading() as session:
            found = select(Deployment.status, func.count()).group_by(Deployment.status)
            return dict(session.execute(found).all())

    def _visible(self, session: Session, user: User, uuid: str, *, lock: bool = False) -> Deployment:
        wanted = select(Deployment).where(Deployment.uuid == uuid)
        if not _UUID.fullmatch(uuid):  # PostgreSQL refuses some texts, and none of them is a deployment
            raise Missing(f"there is no deployment {uuid[:64]}")
        found = session.scalar(wanted.with_for_update() if lock else wanted)
        if found is None or not user.sees(found.issuer, found.subject):
            raise Missing(f"there is no deployment {uuid[:64]}")
        return found

    def _reserve(self, session: Session, of: Deployment, machines: int) -> None:
        """Refuse a deployment for which its owner or its group has no room."""
        parties = [("you have", Deployment.subject == of.subject, self._quotas.user)]
        if of.user_group:
            whose = Deployment.user_group == of.user_group
            quota = self._quotas.of_group(of.user_group)
            parties.append((f"group {of.user_group} has", whose, quota))
        for words, whose, quota in parties:
            number, held = _held(session, of.issuer, whose, Deployment.uuid != of.uuid)
            over = quota.exceeded(number + 1, held + machines)
            if over:
                raise Forbidden(f"with this request {words} {over}; delete deployments, or ask for more")


def _held(session: Session, issuer: str, *which: ColumnElement[bool]) -> tuple[int, int]:
    """The number of deployments that quotas count, and of their machines."""
    columns = select(func.count(), func.coalesce(func.sum(Deployment.machines), 0))
    counted = (Deployment.issuer == issuer, Deployment.status != Status.DELETE_COMPLETE)
    number, machines = session.execute(columns.where(*counted, *which)).one()
    return int(number), int(machines)


def cancel(session: Session, uuid: str) -> None:
    """Cancel the runs of a deployment that are not over.

    Args:
        session: the transaction.
        uuid: of the deployment.
    """
    mine = update(Run).where(Run.deployment == uuid)
    session.execute(mine.where(Run.state == "queued").values(state="cancelled", ended=time.time()))
    session.execute(mine.where(Run.state == "running").values(cancel=True))


def forget(found: Deployment) -> None:
    """Empty what nobody needs of a deployment that is gone: its values, and a text that may be long.

    Args:
        found: the deployment.
    """
    found.text, found.parameters, found.secrets = "", {}, ""


def _begin(
    session: Session, found: Deployment, kind: Kind, machines: int | None = None, *, force: bool = False
) -> None:
    found.status, found.reason, found.updated = statuses.begun(kind), "", time.time()
    session.add(Run(deployment=found.uuid, kind=kind, created=found.updated, machines=machines, force=force))


def _owned_by(found: Deployment, user: User) -> str:
    return "" if found.subject == user.subject else f"owner {found.subject}"
