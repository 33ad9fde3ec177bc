# SPDX-License-Identifier: GPL-3.0-or-later
"""Hours that users held slices, GPUs, CPUs and memory, as machines have told them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, or_, select
from sqlalchemy.orm import Session

from gpufarm.serve import audit
from gpufarm.serve.database import Database
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Forbidden, Missing, Refused
from gpufarm.serve.settings import Issuer, Settings
from gpufarm.serve.tables import Source, Use

HOURS = ("slice_hours", "gpu_hours", "cpu_hours", "memory_gib_hours")
# Fields of a row, with the words of `gpufarm report`; `project` is the group of the deployment.
FIELDS = {
    "month": Use.month,
    "user": Use.login,
    "group": Use.account,
    "project": Use.project,
    "machine": Use.machine,
    "source": Use.source,
    "profile": Use.profile,
}
# Rows of an answer.
MOST = 20_000
# Months that are shown unless a request says otherwise.
MONTHS = 12
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True)
class Wanted:
    """A checked request.

    Attributes:
        since: first month, such as ``2026-01``.
        before: first month that does not count any more.
        by: fields of a row.
    """

    since: str
    before: str
    by: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """Hours, and how far they can be trusted.

    Attributes:
        wanted: the request.
        rows: maps of the fields, with `HOURS`.
        months: the same by month alone.
        login: name of the user's account; None if it is not known, or does not matter.
        read: time of the last reading; 0 for none yet.
        failure: why the reading after that has failed; empty if it has not.
        silent: machines that did not answer, with the time of their last numbers.
    """

    wanted: Wanted
    rows: list[dict[str, Any]]
    months: list[dict[str, Any]]
    login: str | None
    read: float
    failure: str
    silent: list[Source]


def wanted(since: str | None, before: str | None, by: Sequence[str], now: float) -> Wanted:
    """Check a request.

    Args:
        since: first month; None for eleven months ago.
        before: first month that does not count any more; None for the next one.
        by: fields of a row; none for months.
        now: present time.

    Returns:
        The request.

    Raises:
        Refused: a month or a field is none, or the period is empty.
    """
    today = datetime.fromtimestamp(now, UTC)
    end = before or _month(today.year * 12 + today.month)
    begin = since or _month(today.year * 12 + today.month - MONTHS)
    for text in (begin, end):
        if not _MONTH.fullmatch(text):
            raise Refused(f"{text[:32]} is no month; write one such as 2026-11")
    if begin >= end:
        raise Refused(
            f"the period from {begin} to the begin of {end} is empty; choose an earlier first month"
        )
    unknown = [name for name in by if name not in FIELDS]
    if unknown:
        raise Refused(f"{unknown[0][:32]} is no field of hours; choose some of {', '.join(FIELDS)}")
    return Wanted(begin, end, tuple(dict.fromkeys(by)) or ("month",))


def _month(number: int) -> str:
    return f"{number // 12:04}-{number % 12 + 1:02}"


class Hours:
    """The hours of a database."""

    def __init__(self, database: Database, settings: Settings) -> None:
        """Take the database.

        Args:
            database: with the tables.
            settings: of the service.
        """
        self._database = database
        self._on = settings.hours_minutes > 0
        self._issuers = {issuer.url: issuer for issuer in settings.issuers}
        self._vouched = [offer.name for offer in settings.offers if offer.accounts]

    def own(self, user: User, asked: Wanted) -> Report:
        """Tell the hours of a user.

        Args:
            user: the user.
            asked: the request.

        Returns:
            The hours of the account that the user has on machines of the site, and on those of deployments of
            which the operator says that they have the same accounts; none if its name is not known.

        Raises:
            Refused: there are too many rows, or this service keeps no hours.
            Unavailable: the database does not answer.
        """
        login = login_of(self._issuers[user.issuer], user)
        vouched = and_(Use.issuer == user.issuer, Use.template.in_(self._vouched))
        mine = and_(Use.login == login, or_(Use.deployment == "", vouched)) if login else false()
        heard = or_(Source.deployment == "", Source.machine.in_(select(Use.machine).where(mine)))
        return replace(self._read(asked, mine, heard if login else false()), login=login)

    def all(self, user: User, asked: Wanted) -> Report:
        """Tell the hours of all users; the look is noted.

        Args:
            user: an administrator.
            asked: the request.

        Returns:
            The hours on machines of deployments of the issuer, and on those of the site if users of the
            issuer have their accounts there.

        Raises:
            Forbidden: the user is no administrator.
            Refused: there are too many rows, or this service keeps no hours.
            Unavailable: the database does not answer.
        """
        if not user.administrator:
            raise Forbidden("only administrators may see the hours of others; go back to your own")
        of_site = bool(self._issuers[user.issuer].login_claim)
        with self._database.changing() as session:
            audit.note(session, user, "list hours")
        seen = [
            or_(
                and_(table.deployment != "", table.issuer == user.issuer),
                table.deployment == "" if of_site else false(),
            )
            for table in (Use, Source)
        ]
        return self._read(asked, *seen)

    def _read(self, asked: Wanted, which: ColumnElement[bool], heard: ColumnElement[bool]) -> Report:
        if not self._on:
            raise Missing("this service keeps no hours; ask its operator")
        chosen = (Use.month >= asked.since, Use.month < asked.before, which)
        silent = select(Source).where(Source.failure != "", Source.machine != "", heard)
        with self._database.reading() as session:
            found, months = _rows(session, asked.by, chosen), _rows(session, ("month",), chosen)
            whole = session.get(Source, "")
            lost = [*session.scalars(silent.order_by(Source.machine))]
        if len(found) > MOST:
            raise Refused(f"these are more than {MOST} rows; choose fewer months or fields")
        read, failure = (whole.answered, whole.failure) if whole else (0.0, "")
        return Report(asked, found, months, None, read, failure, lost)


def _rows(session: Session, by: Sequence[str], which: Iterable[ColumnElement[bool]]) -> list[dict[str, Any]]:
    fields = [FIELDS[name].label(name) for name in by]
    sums = [func.sum(getattr(Use, name)).label(name) for name in HOURS]
    found = select(*fields, *sums).where(*which).group_by(*fields).order_by(*fields).limit(MOST + 1)
    return [
        {**row, **{name: round(row[name], 4) for name in HOURS}} for row in session.execute(found).mappings()
    ]


def login_of(issuer: Issuer, user: User) -> str | None:
    """Tell the name of the account that a user has on machines.

    Args:
        issuer: of the user.
        user: the user.

    Returns:
        The claim that the operator names for it; None if there is none, or it is no text.
    """
    found = user.claims.get(issuer.login_claim) if issuer.login_claim else None
    return found if isinstance(found, str) and found and found.isprintable() else None


def total(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Add rows up.

    Args:
        rows: of a report.

    Returns:
        The sum of each of `HOURS`.
    """
    kept = [*rows]
    return {name: sum(row[name] for row in kept) for name in HOURS}


def as_csv(report: Report) -> str:
    """Write a report for spreadsheets.

    Args:
        report: the report.

    Returns:
        Lines, the first with the names. No text is a formula there (OWASP, CSV Injection).
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    names = [*report.wanted.by, *HOURS]
    writer.writerow(names)
    writer.writerows([_inert(row[name]) for name in names] for row in report.rows)
    return written.getvalue()


def as_json(report: Report, reasons: bool) -> dict[str, Any]:
    """Write a report for programs.

    Args:
        report: the report.
        reasons: whether the reader may know why machines did not answer.

    Returns:
        The object.
    """
    return {
        "since": report.wanted.since,
        "before": report.wanted.before,
        "read": _moment(report.read),
        "rows": report.rows,
        "silent": {
            one.machine: (one.failure if reasons else "it did not answer")
            + f"; last numbers: {_moment(one.answered)}"
            for one in report.silent
        },
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else "never"


def _inert(value: Any) -> Any:
    formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if formula else value
