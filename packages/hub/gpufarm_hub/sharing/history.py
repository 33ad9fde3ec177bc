# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a user held slices on which day, from the audit log."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from .leases import Lease

# Events that end a lease; their lines tell when it began as well.
ENDS = ("returned", "lost")


@dataclass(frozen=True)
class Held:
    """Slices that a user held.

    Attributes:
        profile: of the slices.
        count: how many; of one that several notebooks may hold, each notebook counts an equal part.
        begin: when they were taken.
        end: when they were given back, or now.
    """

    profile: str
    count: float
    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Day:
    """A day of UTC.

    Attributes:
        day: which one.
        hours: profile to hours that slices were held; two slices for an hour are two.
    """

    day: date
    hours: dict[str, float]

    @property
    def total(self) -> float:
        """Hours of all profiles."""
        return sum(self.hours.values())


def ended(lines: Iterable[str], user: str) -> Iterator[Held]:
    """Return what a user held and has given back.

    Args:
        lines: of the audit log. Those that are damaged, as after a power failure, are left out.
        user: whose.
    """
    for line in lines:
        if f'"{user}"' not in line:
            continue
        try:
            entry = json.loads(line)
            if entry["user"] == user and entry["event"] in ENDS:
                begin, end = (datetime.fromisoformat(entry[name]) for name in ("since", "time"))
                count = len(entry["slices"]) / entry.get("notebooks", 1)
                yield Held(entry["profile"], count, begin, end)
        except (ValueError, KeyError, TypeError):
            continue


def still(leases: Iterable[Lease], user: str, now: datetime) -> Iterator[Held]:
    """Return what a user holds now."""
    for lease in leases:
        if lease.user == user:
            begin = datetime.fromisoformat(lease.taken)
            yield Held(lease.pieces[0].profile, len(lease.pieces) / lease.notebooks, begin, now)


def by_day(held: Iterable[Held], days: int, now: datetime) -> list[Day]:
    """Return the last days, today first.

    Args:
        held: what was held, and is.
        days: how many days.
        now: with its time zone.
    """
    today = now.astimezone(UTC).date()
    sums = {today - timedelta(days=number): defaultdict[str, float](float) for number in range(days)}
    for one in held:
        for day, hours in sums.items():
            midnight = datetime.combine(day, datetime.min.time(), UTC)
            begin, end = max(one.begin, midnight), min(one.end, midnight + timedelta(days=1))
            if end > begin:
                hours[one.profile] += one.count * (end - begin).total_seconds() / 3600
    return [Day(day, dict(hours)) for day, hours in sums.items()]


def read(log: Path, since: datetime) -> Iterator[str]:
    """Return the lines of the audit log, with those that logrotate has moved away.

    Args:
        log: the file that is written now.
        since: files that were changed last before are left out.

    Raises:
        OSError: a file cannot be read.
    """
    for file in sorted(log.parent.glob(f"{log.name}*")):
        if file.stat().st_mtime < since.timestamp():
            continue
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8", errors="replace") as lines:
            yield from lines
