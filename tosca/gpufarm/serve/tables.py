# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables. A change here needs a version in `schema/versions`; a test compares both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, Index, Integer, MetaData, String, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# SQLite counts by itself in columns that are exactly INTEGER only.
_COUNT = BigInteger().with_variant(Integer, "sqlite")
_NAMES = {
    "ix": "ix_%(column_0_label)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(DeclarativeBase):
    """Base of all tables. Times are seconds since 1970 in UTC."""

    metadata = MetaData(naming_convention=_NAMES)


class Deployment(Table):
    """A deployment as clients see it.

    Attributes:
        uuid: made once; the name of the deployment in the state of the deployer, too.
        issuer, subject: the owner.
        user_group: the active group of the owner; empty for none.
        status, reason: as in `statuses`, and the sentence that explains a failure.
        template: name of the template in the catalogue of the operator.
        text: the template as the client sent it; empty when the deployment is gone.
        parameters: values of inputs, in the types of the template, without the secrets; as the text.
        secrets: sealed values of secret inputs; empty for none, and as the text.
        machines: number that the quotas count: until an update is done, the larger one; after a removal that
            failed, those that are not free.
        outputs, resources: as the last run returned them.
        callback: URL; empty for none.
        timeout: of each run, in minutes.
        created, updated: times.
    """

    __tablename__ = "deployments"
    __table_args__ = (Index("ix_deployments_owner", "issuer", "subject", "created"),)

    uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    issuer: Mapped[str] = mapped_column(String(512))
    subject: Mapped[str] = mapped_column(String(255))
    user_group: Mapped[str] = mapped_column(String(256), default="")
    status: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(Text, default="")
    template: Mapped[str] = mapped_column(String(128))
    text: Mapped[str] = mapped_column(Text)
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    secrets: Mapped[str] = mapped_column(Text, default="")
    machines: Mapped[int] = mapped_column(default=0)
    outputs: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    resources: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list)
    callback: Mapped[str] = mapped_column(Text, default="")
    timeout: Mapped[int] = mapped_column()
    created: Mapped[float] = mapped_column(Double)
    updated: Mapped[float] = mapped_column(Double)


class Run(Table):
    """A run that a worker carries out; the table is the queue.

    Attributes:
        id: in the order of the requests.
        deployment: its uuid.
        kind: of `statuses.Kind`.
        state: ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
        cancel: whether a later request takes its place.
        attempt: number of workers that have taken it.
        worker, lease: the worker that holds it, and the time until when it need not show signs of life.
        created, began, ended: times; 0 for not yet.
        log: progress, for the owner.
        reason: why it failed.
        machines: number that the deployment holds when the run ends well; None if that stays.
        force: whether a removal gives up machines that the pool lacks, as an administrator wants.
    """

    __tablename__ = "runs"
    __table_args__ = (
        Index(
            "ix_runs_one_at_a_time",
            "deployment",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        Index("ix_runs_state", "state"),
    )

    id: Mapped[int] = mapped_column(_COUNT, primary_key=True)
    deployment: Mapped[str] = mapped_column(ForeignKey("deployments.uuid"))
    kind: Mapped[str] = mapped_column(String(8))
    state: Mapped[str] = mapped_column(String(12), default="queued")
    cancel: Mapped[bool] = mapped_column(default=False)
    attempt: Mapped[int] = mapped_column(default=0)
    worker: Mapped[str] = mapped_column(String(128), default="")
    lease: Mapped[float] = mapped_column(Double, default=0.0)
    created: Mapped[float] = mapped_column(Double)
    began: Mapped[float] = mapped_column(Double, default=0.0)
    ended: Mapped[float] = mapped_column(Double, default=0.0)
    log: Mapped[str] = mapped_column(Text, default="")
    reason: Mapped[str] = mapped_column(Text, default="")
    machines: Mapped[int | None] = mapped_column(default=None)
    force: Mapped[bool] = mapped_column(default=False)


class Callback(Table):
    """A message about a final status that has to be posted.

    Attributes:
        id: in the order of the events.
        deployment, url, body: what is posted where.
        state: ``waiting``, ``sent`` or ``failed``.
        attempt: number of attempts so far.
        due: time of the next attempt.
        failure: of the last attempt.
    """

    __tablename__ = "callbacks"
    __table_args__ = (Index("ix_callbacks_due", "state", "due"),)

    id: Mapped[int] = mapped_column(_COUNT, primary_key=True)
    deployment: Mapped[str] = mapped_column(ForeignKey("deployments.uuid"))
    url: Mapped[str] = mapped_column(Text)
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(8), default="waiting")
    attempt: Mapped[int] = mapped_column(default=0)
    due: Mapped[float] = mapped_column(Double)
    failure: Mapped[str] = mapped_column(Text, default="")


class Audit(Table):
    """An entry for each change, and for each look of an administrator at what others own.

    Attributes:
        id: in the order of the events.
        time: of the event.
        issuer, subject: the user.
        action: such as ``create`` or ``read``.
        deployment: its uuid; empty for a list.
        detail: more about it.
    """

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(_COUNT, primary_key=True)
    time: Mapped[float] = mapped_column(Double, index=True)
    issuer: Mapped[str] = mapped_column(String(512))
    subject: Mapped[str] = mapped_column(String(255))
    action: Mapped[str] = mapped_column(String(32))
    deployment: Mapped[str] = mapped_column(String(36), default="", index=True)
    detail: Mapped[str] = mapped_column(Text, default="")


class Login(Table):
    """A browser that is signed in to the pages.

    Attributes:
        id: digest of the secret in its cookie.
        issuer, claims: of the user, as the issuer told them at the sign-in.
        ends: time after which the user has to sign in again.
    """

    __tablename__ = "logins"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    issuer: Mapped[str] = mapped_column(String(512))
    claims: Mapped[dict[str, Any]] = mapped_column(JSON)
    ends: Mapped[float] = mapped_column(Double, index=True)


class Use(Table):
    """The part of a use of resources that is in one month.

    Attributes:
        key: digest of what names the part, by which no part counts twice.
        month: such as ``2026-11``, of UTC.
        login: name of the account that held the resources.
        account: of Slurm; empty for none.
        source: ``slurm`` or ``hub``.
        profile: of the slices; empty for what is no slice.
        machine: that told it.
        deployment, issuer, template, project: uuid of the deployment that held the machine when the use was
            seen first, the issuer of its owner, its template and its group; empty for machines of the site.
        slice_hours, gpu_hours, cpu_hours, memory_gib_hours: as `gpufarm report` has them.
    """

    __tablename__ = "uses"
    __table_args__ = (Index("ix_uses_login", "login", "month"),)

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    month: Mapped[str] = mapped_column(String(7), index=True)
    login: Mapped[str] = mapped_column(Text)
    account: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    profile: Mapped[str] = mapped_column(Text)
    machine: Mapped[str] = mapped_column(Text)
    deployment: Mapped[str] = mapped_column(String(36))
    issuer: Mapped[str] = mapped_column(String(512))
    template: Mapped[str] = mapped_column(String(128))
    project: Mapped[str] = mapped_column(String(256))
    slice_hours: Mapped[float] = mapped_column(Double)
    gpu_hours: Mapped[float] = mapped_column(Double)
    cpu_hours: Mapped[float] = mapped_column(Double)
    memory_gib_hours: Mapped[float] = mapped_column(Double)


class Source(Table):
    """A machine that tells hours.

    Attributes:
        machine: its name in the pool. The empty name is the reading as a whole, which is also its schedule.
        deployment, issuer, template: that holds it, as in `Use`.
        asked, answered: times; 0 for never, and until a reading has gone back to its earlier months.
        failure: why it did not answer the last time; empty if it did.
    """

    __tablename__ = "sources"

    machine: Mapped[str] = mapped_column(Text, primary_key=True)
    deployment: Mapped[str] = mapped_column(String(36), default="")
    issuer: Mapped[str] = mapped_column(String(512), default="")
    template: Mapped[str] = mapped_column(String(128), default="")
    asked: Mapped[float] = mapped_column(Double, default=0.0)
    answered: Mapped[float] = mapped_column(Double, default=0.0)
    failure: Mapped[str] = mapped_column(Text, default="")


class Console(Table):
    """The readings of the output of a deployment's tasks.

    Attributes:
        deployment: its uuid.
        asked: when a reading was asked for that has not ended; 0 for none.
        begun: when a worker has begun it; 0 for not yet.
        read: when one went well last; 0 for never.
        failure: why the last one did not; empty if it did.
    """

    __tablename__ = "consoles"

    deployment: Mapped[str] = mapped_column(ForeignKey("deployments.uuid"), primary_key=True)
    asked: Mapped[float] = mapped_column(Double, default=0.0, index=True)
    begun: Mapped[float] = mapped_column(Double, default=0.0)
    read: Mapped[float] = mapped_column(Double, default=0.0)
    failure: Mapped[str] = mapped_column(Text, default="")


class Task(Table):
    """A start of a container or a run of a job, as the cluster told it.

    Attributes:
        deployment: its uuid.
        key: digest of node and id, which may be longer than an index takes.
        id: as the cluster has it; no other task of this node has it.
        node: of the template.
        machine: that runs it.
        state, reason: a word, and the sentence that explains it.
        begun, ended: times; 0 for not yet.
        stdout, stderr: the end of what it has printed.
        cut: those of both of which there was more.
        read: when the output was read; 0 for never.
        unread: why it could not be read the last time; empty if it was.
    """

    __tablename__ = "tasks"

    deployment: Mapped[str] = mapped_column(ForeignKey("deployments.uuid"), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    id: Mapped[str] = mapped_column(Text)
    node: Mapped[str] = mapped_column(Text)
    machine: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    begun: Mapped[float] = mapped_column(Double)
    ended: Mapped[float] = mapped_column(Double)
    stdout: Mapped[str] = mapped_column(Text)
    stderr: Mapped[str] = mapped_column(Text)
    cut: Mapped[list[str]] = mapped_column(JSON)
    read: Mapped[float] = mapped_column(Double)
    unread: Mapped[str] = mapped_column(Text)
