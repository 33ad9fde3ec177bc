# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hours of GPUs, slices, CPUs and memory by user, group, month and more. No I/O."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from .use import Use

FIELDS = ("month", "user", "group", "source", "profile", "machine", "identity")
HOURS = ("slice_hours", "gpu_hours", "cpu_hours", "memory_gib_hours")


def within(uses: Iterable[Use], since: datetime, until: datetime) -> Iterator[Use]:
    """Return the parts of uses in a period, and each use once, however many hosts told it.

    Args:
        since: first moment of the period.
        until: first moment after it.
    """
    for use in {one.identity: one for one in uses}.values():
        begin, end = max(use.begin, since), min(use.end, until)
        if begin < end:
            yield replace(use, begin=begin, end=end)


def totals(uses: Iterable[Use], by: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row of hours for each group of uses, in the order of their fields.

    A use that is in several months is divided between them (UTC). With `profile` among the fields, the hours
    of a slice are in the row of its profile, and those of CPUs, memory and whole GPUs in the row without one.

    Args:
        by: some of `FIELDS`.
    """
    sums: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: dict.fromkeys(HOURS, 0.0))
    for use in (part for one in uses for part in _by_month(one)):
        for profile, hours in _by_profile(use, "profile" in by):
            values = {"month": f"{use.begin:%Y-%m}", "profile": profile, **_names(use)}
            row = sums[tuple(values[name] for name in by)]
            for name, number in hours.items():
                row[name] += number
    return [
        {**dict(zip(by, key, strict=True)), **{name: round(number, 4) for name, number in row.items()}}
        for key, row in sorted(sums.items())
    ]


def records(uses: Iterable[Use]) -> list[dict[str, Any]]:
    """Return each use with the field names of the Open Grid Forum's Usage Record 2.0 (GFD.204).

    Slices and GPUs have no field there and are added by their own names.
    """
    return [
        {
            "RecordId": use.identity,
            "LocalUserId": use.user,
            "LocalGroupId": use.group,
            "StartTime": use.begin.astimezone(UTC).isoformat(),
            "EndTime": use.end.astimezone(UTC).isoformat(),
            "WallDuration": f"PT{round(use.hours * 3600)}S",
            "Processors": use.cpus,
            "Infrastructure": use.source,
            "MachineName": use.machine,
            "MemoryGiB": round(use.memory, 4),
            "GPUs": use.gpus,
            "Slices": dict(use.slices),
        }
        for use in uses
    ]


def as_csv(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> str:
    """Return the rows of `totals` as CSV, with a line of names."""
    written = io.StringIO()
    writer = csv.DictWriter(written, [*by, *HOURS], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return written.getvalue()


def as_table(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> str:
    """Return the rows of `totals` for people, with their sum."""
    whole = {name: sum(row[name] for row in rows) for name in HOURS}
    last = {**dict.fromkeys(by, ""), **({by[0]: "all"} if by else {}), **whole}
    titles = [name.replace("_", " ") for name in (*by, *HOURS)]
    lines = [titles] + [
        [*(str(row[name]) or "-" for name in by), *(f"{row[name]:.1f}" for name in HOURS)]
        for row in (*rows, last)
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if number < len(by) else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_text(use: Use) -> dict[str, Any]:
    """Return a use as JSON can hold it."""
    return {**asdict(use), "begin": use.begin.isoformat(), "end": use.end.isoformat()}


def from_text(entry: dict[str, Any]) -> Use:
    """Return the use that `as_text` wrote."""
    times = {name: datetime.fromisoformat(entry[name]) for name in ("begin", "end")}
    return Use(**{**entry, **times})


def _inert(value: Any) -> Any:
    """Return a value that no spreadsheet takes for a formula (OWASP, CSV Injection)."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _names(use: Use) -> dict[str, str]:
    return {name: getattr(use, name) for name in ("user", "group", "source", "machine", "identity")}


def _by_month(use: Use) -> Iterator[Use]:
    begin, end = use.begin.astimezone(UTC), use.end.astimezone(UTC)
    while begin < end:
        first = begin.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        yield replace(use, begin=begin, end=min(end, following))
        begin = following


def _by_profile(use: Use, apart: bool) -> Iterator[tuple[str, dict[str, float]]]:
    rest = {
        "gpu_hours": use.gpus * use.hours,
        "cpu_hours": use.cpus * use.hours,
        "memory_gib_hours": use.memory * use.hours,
    }
    slices = {profile: number * use.hours for profile, number in use.slices.items()}
    if not apart:
        yield "", {**rest, "slice_hours": sum(slices.values())}
        return
    for profile, hours in slices.items():
        yield profile, {"slice_hours": hours}
    if any(rest.values()) or not slices:
        yield "", rest


def report(told: Sequence[dict[str, Any]], by: Sequence[str]) -> dict[str, Any]:
    """Return all forms of a report.

    Args:
        told: uses as `as_text` wrote them, of any number of hosts.
        by: some of `FIELDS`.

    Raises:
        ValueError: `by` has another field, or one twice.
    """
    unknown = [name for name in by if name not in FIELDS]
    if unknown or not by or len({*by}) < len(by):
        raise ValueError(
            f"A report by {', '.join(by) or 'nothing'} is none; name some of {', '.join(FIELDS)} once."
        )
    uses = list({one.identity: one for one in map(from_text, told)}.values())
    rows = totals(uses, by)
    return {
        "rows": rows,
        "csv": as_csv(rows, by),
        "table": as_table(rows, by),
        "records": records(uses),
    }
