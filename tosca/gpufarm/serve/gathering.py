# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the hours of the machines from time to time and keeps them, so that pages wait for no machine."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from gpufarm.serve.child import answered
from gpufarm.serve.database import Database, Unavailable
from gpufarm.serve.hours import HOURS
from gpufarm.serve.service import Service
from gpufarm.serve.tables import Deployment, Source, Use

LOG = logging.getLogger("gpufarm.serve")
# Seconds between two looks whether a reading is due, and that a reading may take.
PAUSE = 10.0
LONGEST = 1800.0
# Days that a reading goes back for machines that are new, and for those that were silent.
FIRST, LATER = 365, 62
# Parts of uses that one transaction writes: requests wait for it.
AT_ONCE = 500


class Gathering:
    """The hours in a database, and when they are read."""

    def __init__(self, database: Database, minutes: int) -> None:
        """Take the database.

        Args:
            database: with the tables.
            minutes: between two readings.
        """
        self._database = database
        self._minutes = minutes

    def due(self, now: float) -> datetime | None:
        """Begin a reading, if it is time; only one worker gets it.

        Args:
            now: present time.

        Returns:
            The first moment that it has to read, which begins a month; None if it is not time.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.reserving() as session:
            whole = session.get(Source, "")
            if whole is None:
                whole = Source(machine="", asked=0.0, answered=0.0)
                session.add(whole)
            if now < whole.asked + self._minutes * 60:
                return None
            whole.asked = now
            known = [*session.scalars(select(Source).where(Source.machine != ""))]
        fresh = not whole.answered or any(not one.answered and not one.failure for one in known)
        oldest = datetime.fromtimestamp(min((one.answered for one in known), default=0.0), UTC)
        return _month(max(_back(now, FIRST if fresh else LATER), oldest))

    def failed(self, why: str) -> None:
        """Note that no machine has answered; the hours that are known stay.

        Args:
            why: a sentence.

        Raises:
            Unavailable: the database does not answer.
        """
        with self._database.changing() as session:
            session.get_one(Source, "").failure = why

    def keep(self, now: float, since: datetime, answer: Mapping[str, Any]) -> None:
        """Keep what machines have told; those of machines that did not answer stay as they were.

        A machine that is new counts as heard after a reading that went back to its earlier months, which the
        next one does.

        Args:
            now: time of the reading.
            since: its first moment, as `due` returned it.
            answer: ``rows`` by all fields, ``machines`` and ``silent``, as in `gpufarm.answers.Hours`.

        Raises:
            Unavailable: the database does not answer; another reading repeats it.
        """
        machines, silent = answer["machines"], answer["silent"]
        with self._database.reading() as session:
            holders = {name: _holder(session, deployment) for name, deployment in machines.items()}
        parts = {
            part["key"]: part for part in (_part(row, holders[row["machine"]]) for row in answer["rows"])
        }
        written = [*parts.values()]
        for start in range(0, len(written), AT_ONCE):
            with self._database.changing() as session:
                _write(session, written[start : start + AT_ONCE])
        with self._database.changing() as session:
            session.execute(delete(Source).where(Source.machine.not_in(["", *machines])))
            whole = since <= _month(_back(now, FIRST))
            for name in machines:
                holder = {key: value for key, value in holders[name].items() if key != "project"}
                one = session.get(Source, name) or Source(machine=name, answered=0.0)
                for key, value in {**holder, "asked": now, "failure": silent.get(name, "")}.items():
                    setattr(one, key, value)
                if name not in silent and (one.answered or whole):
                    one.answered = now
                session.add(one)
            reading = session.get_one(Source, "")
            reading.answered, reading.failure = now, ""


def _back(now: float, days: int) -> datetime:
    return datetime.fromtimestamp(now, UTC) - timedelta(days=days)


def _month(moment: datetime) -> datetime:
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _holder(session: Session, deployment: str) -> dict[str, str]:
    """The deployment that has a machine. Nobody sees hours of one that is unknown here: it has no issuer."""
    found = session.get(Deployment, deployment) if deployment else None
    return {
        "deployment": deployment[:36],
        "issuer": found.issuer if found else "",
        "template": found.template if found else "",
        "project": found.user_group if found else "",
    }


def _part(row: Mapping[str, Any], holder: Mapping[str, str]) -> dict[str, Any]:
    named = json.dumps([row["source"], row["identity"], row["month"], row["profile"]])
    return {
        "key": hashlib.sha256(named.encode()).hexdigest(),
        "login": row["user"],
        "account": row["group"],
        **{name: row[name] for name in ("month", "source", "profile", "machine", *HOURS)},
        **holder,
    }


def _write(session: Session, parts: Sequence[Mapping[str, Any]]) -> None:
    """Write parts, with new hours for those that are there: a use that goes on grows."""
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    fresh = dialect.insert(Use).values([*parts])
    grown = {name: fresh.excluded[name] for name in HOURS}
    session.execute(fresh.on_conflict_do_update(index_elements=["key"], set_=grown))


class Reader:
    """Has the hours read, in a process of its own each time."""

    def __init__(self, service: Service, program: Sequence[str]) -> None:
        """Prepare.

        Args:
            service: with the settings and the database.
            program: that carries out an attempt.
        """
        self._settings = service.settings
        self._program = program
        self._gathering = Gathering(service.database, service.settings.hours_minutes)

    def run(self, stop: threading.Event) -> None:
        """Read the hours whenever it is time.

        Args:
            stop: ends it, and a reading that is under way.
        """
        while self._settings.hours_minutes and not stop.is_set():
            try:
                since = self._gathering.due(time.time())
                if since:
                    self._read(since, stop)
            except Unavailable as error:
                LOG.error("%s", error.message)
            except Exception:  # the next reading may go well
                LOG.exception("the hours cannot be read")
            stop.wait(PAUSE)

    def _read(self, since: datetime, stop: threading.Event) -> None:
        now = time.time()
        order = {"kind": "HOURS", "since": since.isoformat(), **self._settings.order()}
        told = answered(self._program, order, stop, LONGEST)
        if told["well"]:
            self._gathering.keep(now, since, told)
        elif not stop.is_set():
            LOG.error("the hours: %s", told["reason"])
            self._gathering.failed(told["reason"])
