# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations of a Slurm cluster: those declared, those that are there, and what leads to them. No I/O.

Sources: scontrol(1), "RESERVATIONS"; src/slurmctld/reservation.c of Slurm 24.11.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from .accounts import NAME as ACCOUNT
from .accounts import NUMBER, PROFILE, USER

# Slurm keeps comments of reservations from 23.02 on (src/scontrol/create_res.c), and takes GPUs into
# reservations from 23.11 on (scontrol(1), TRES).
OLDEST_RELEASE = (23, 11)
# The names are read from lines of blanks and =, and stand in lists with commas.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ONCE = "once"
# How often a reservation is repeated, and the flag of Slurm.
REPEATS = {
    ONCE: "",
    "daily": "DAILY",
    "weekdays": "WEEKDAY",
    "weekends": "WEEKEND",
    "weekly": "WEEKLY",
}
DAY = timedelta(days=1)
# Jobs of its users get there without naming it, and those that wait at its end may run elsewhere.
FLAGS = ("MAGNETIC", "NO_HOLD_JOBS_AFTER_END")
FORMAT = "%Y-%m-%dT%H:%M:%S"
MARK = re.compile(r"gpufarm\.cluster:([^:]+):([0-9a-f]{16}):([0-9a-f]{16})")


class ReservationsProblem(ValueError):
    """The declared reservations cannot be; sentences say what, why, and what to do."""


@dataclass(frozen=True)
class Reservation:
    """Nodes, or slices, that only some may use for a while.

    `start` and `end` are of the first time, in the local time of the controller. One of `nodes`,
    `node_count` and `slices`, a number by profile, says what is reserved; the last two are taken from
    `partition`. `accounts` and `users` are who may use it; a job must fit both where both are given.
    """

    name: str
    start: datetime
    end: datetime
    repeat: str = ONCE
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    partition: str = ""
    nodes: tuple[str, ...] = ()
    node_count: int = 0
    slices: Mapping[str, int] = field(default_factory=dict)

    def fixed(self) -> str:
        """Return a digest of what no update of Slurm can change."""
        return _digest(
            self.start.strftime(FORMAT),
            self.repeat,
            self.partition,
            sorted(self.nodes),
            self.node_count,
            dict(self.slices),
            bool(self.accounts),
            bool(self.users),
        )

    def open(self) -> str:
        """Return a digest of the rest."""
        return _digest(self.end.strftime(FORMAT), sorted(self.accounts), sorted(self.users))

    def mark(self, cluster: str) -> str:
        """Return the comment by which the reservation is known as ours, and as it is declared."""
        return f"gpufarm.cluster:{cluster}:{self.fixed()}:{self.open()}"

    def resources(self) -> str:
        """Return what is reserved, as words of scontrol."""
        if self.nodes:
            return f"Nodes={','.join(self.nodes)}"
        if self.slices:
            slices = ",".join(f"gres/gpu:{name}={number}" for name, number in sorted(self.slices.items()))
            return f"TRES={slices}"
        return f"NodeCnt={self.node_count}"


@dataclass(frozen=True)
class Shown:
    """A reservation that is there: its line, whether its time has come, and its comment."""

    line: str
    active: bool
    comment: str

    def is_ours(self, cluster: str) -> bool:
        """Return whether the role made it, for this cluster."""
        found = MARK.fullmatch(self.comment)
        return bool(found and found[1] == cluster)


@dataclass(frozen=True)
class Machines:
    """The nodes of a cluster and their slices by profile, by node and by partition."""

    nodes: frozenset[str]
    slices: Mapping[str, Mapping[str, int]]


def read_release(printed: str) -> tuple[int, ...]:
    """Return year and month of Slurm, from `scontrol --version`; empty if it says neither."""
    found = re.search(r"([0-9]+)\.([0-9]+)", printed)
    return (int(found[1]), int(found[2])) if found else ()


def read_shown(printed: str) -> dict[str, Shown]:
    """Return the reservations by their names, from `scontrol show reservations --oneliner`."""
    found = {}
    for line in printed.splitlines():
        # The first of several, as the comment is the last and may have any words.
        words = (word.partition("=") for word in reversed(line.split()))
        values = {key: value for key, sign, value in words if sign}
        if "ReservationName" in values:
            comment = values.get("Comment", "")
            found[values["ReservationName"]] = Shown(line.strip(), values.get("State") == "ACTIVE", comment)
    return found


def read_machines(printed: str) -> Machines:
    """Return what the cluster has, from `sinfo --all --noheader --Node --format='%N|%R|%G'`."""
    nodes: set[str] = set()
    slices: dict[str, Counter[str]] = {}
    for line in printed.splitlines():
        node, partition, gres = line.split("|")
        nodes.add(node)
        here = slices.setdefault(partition, Counter())
        for profile, number in re.findall(r"\bgpu:([^:,()]+):([0-9]+)", gres):
            here[profile] += int(number)
    return Machines(frozenset(nodes), slices)


def read_request(entries: Sequence[Mapping[str, Any]]) -> list[Reservation]:
    """Return what is declared.

    Args:
        entries: maps with `name`, `start`, `end`, and optionally the other fields of a reservation; None is
            as if a key were not there.

    Raises:
        ReservationsProblem: something is wrong; all of it is told, a sentence each.
    """
    request, wrong = _read(entries)
    if wrong:
        raise ReservationsProblem(" ".join(wrong))
    return request


def problems(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with declared reservations, one sentence each."""
    return _read(entries)[1]


def misfits(request: Sequence[Reservation], shown: Mapping[str, Shown], there: Machines, cluster: str) -> str:
    """Return why the cluster cannot have the reservations; empty if it can.

    Args:
        request: those that are declared.
        shown: those that are there.
        there: the nodes of the cluster.
        cluster: its name.
    """
    return " ".join(sentence for one in request for sentence in _misfits(one, shown, there, cluster))


def commands(
    request: Sequence[Reservation], shown: Mapping[str, Shown], now: datetime, cluster: str
) -> list[list[str]]:
    """Return the arguments of scontrol, call by call, that lead to what is declared.

    A reservation whose only time is over is not made. Slurm deletes it at its end; if the end was moved to
    the past, it is deleted here.

    Args:
        request: the reservations, which the cluster can have.
        shown: those that are there.
        now: local time of the controller.
        cluster: its name.
    """
    names = {one.name for one in request}
    ours = {name: one for name, one in shown.items() if one.is_ours(cluster)}
    calls = [_delete(name) for name in sorted({*ours} - names)]
    for one in request:
        found = ours.get(one.name)
        if found and found.comment == one.mark(cluster):
            continue
        if one.repeat == ONCE and one.end <= now:
            calls += [_delete(one.name)] if found else []
            continue
        if found and f":{one.fixed()}:" in found.comment:
            calls.append(_update(one, cluster))
            continue
        if found:
            calls.append(_delete(one.name))
        calls.append(_create(one, now, cluster))
    return calls


def next_start(one: Reservation, now: datetime) -> datetime:
    """Return when a reservation begins next: never before now, as Slurm takes no time in the past.

    A reservation that is not repeated and has begun starts now; a repeated one starts at its next time.
    """
    if one.repeat == ONCE:
        return max(one.start, now)
    step = 7 * DAY if one.repeat == "weekly" else DAY
    start = one.start
    if start < now:
        start += step * -(-(now - start) // step)
    while (one.repeat == "weekdays" and start.weekday() > 4) or (  # Friday
        one.repeat == "weekends" and start.weekday() < 5  # Saturday
    ):
        start += DAY
    return start


def _create(one: Reservation, now: datetime, cluster: str) -> list[str]:
    start = next_start(one, now)
    end = one.end if one.repeat == ONCE else start + (one.end - one.start)
    flags = ",".join(filter(None, (*FLAGS, REPEATS[one.repeat])))
    return [
        "create",
        "reservation",
        f"ReservationName={one.name}",
        f"StartTime={'now' if start <= now else start.strftime(FORMAT)}",
        f"EndTime={end.strftime(FORMAT)}",
        *_who(one),
        *([f"PartitionName={one.partition}"] if one.partition else []),
        one.resources(),
        f"Flags={flags}",
        f"Comment={one.mark(cluster)}",
    ]


def _update(one: Reservation, cluster: str) -> list[str]:
    minutes = int((one.end - one.start).total_seconds() // 60)
    # Without a duration, Slurm would not know how long a repeated one is.
    until = f"EndTime={one.end.strftime(FORMAT)}" if one.repeat == ONCE else f"Duration={minutes}"
    return ["update", f"ReservationName={one.name}", until, *_who(one), f"Comment={one.mark(cluster)}"]


def _who(one: Reservation) -> list[str]:
    found = {"Accounts": one.accounts, "Users": one.users}
    return [f"{key}={','.join(names)}" for key, names in found.items() if names]


def _delete(name: str) -> list[str]:
    return ["delete", f"ReservationName={name}"]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _read(entries: Sequence[Mapping[str, Any]]) -> tuple[list[Reservation], list[str]]:
    request, wrong = [], []
    for entry in entries:
        known = {key: value for key, value in entry.items() if value is not None}
        told = [f"The reservation {known['name']!r} {sentence}" for sentence in _wrong(known)]
        wrong += told
        if not told:
            request.append(_reservation(known))
    for name, times in Counter(str(one["name"]) for one in entries).items():
        if times > 1:
            wrong.append(f"The reservation {name!r} is declared twice; declare it once.")
    return request, wrong


def _reservation(entry: Mapping[str, Any]) -> Reservation:
    return Reservation(
        name=entry["name"],
        start=_time(entry["start"]),
        end=_time(entry["end"]),
        repeat=entry.get("repeat", ONCE),
        accounts=tuple(entry.get("accounts", ())),
        users=tuple(entry.get("users", ())),
        partition=entry.get("partition", ""),
        nodes=tuple(entry.get("nodes", ())),
        node_count=int(entry.get("node_count", 0)),
        slices={name: int(number) for name, number in entry.get("slices", {}).items()},
    )


def _time(text: str) -> datetime:
    """Return a local time.

    Raises:
        ValueError: it is none.
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo or found.second or found.microsecond:
        raise ValueError(text)
    return found


def _wrong(entry: Mapping[str, Any]) -> Iterator[str]:
    if not NAME.fullmatch(entry["name"]):
        yield "has a name that Slurm does not take; use at most 64 letters, digits and ._- in it."
    yield from _wrong_times(entry)
    if entry.get("repeat", ONCE) not in REPEATS:
        yield f"is repeated {entry['repeat']!r}; give one of {', '.join(REPEATS)}."
    if not entry.get("accounts") and not entry.get("users"):
        yield "is for nobody; give accounts, users, or both."
    for kind, pattern in (("accounts", ACCOUNT), ("users", USER), ("nodes", NAME)):
        for name in entry.get(kind, ()):
            if not pattern.fullmatch(str(name)):
                yield f"has {name!r} among its {kind}, which cannot be; correct it."
    yield from _wrong_resources(entry)


def _wrong_times(entry: Mapping[str, Any]) -> Iterator[str]:
    times = {}
    for key in ("start", "end"):
        try:
            times[key] = _time(entry[key])
        except ValueError:
            yield f"has the {key} {entry[key]!r}; give a local time such as 2026-12-01T09:00."
    if len(times) < len(("start", "end")):
        return
    if times["start"] >= times["end"]:
        yield f"ends at {entry['end']}, which is not after its start at {entry['start']}; correct the times."
    longest = {"weekly": 7 * DAY}.get(entry.get("repeat", ONCE), DAY)
    if entry.get("repeat", ONCE) != ONCE and times["end"] - times["start"] > longest:
        yield "is repeated before it has ended; let it end sooner."


def _wrong_resources(entry: Mapping[str, Any]) -> Iterator[str]:
    given = [key for key in ("nodes", "node_count", "slices") if entry.get(key)]
    if len(given) != 1:
        what = " and ".join(given) or "nothing"
        yield f"names {what} to reserve; give one of nodes, node_count and slices."
    partition = entry.get("partition", "")
    if partition and not NAME.fullmatch(partition):
        yield f"takes the partition {partition!r}, which cannot be; correct it."
    if "nodes" not in given and not partition:
        yield "says no partition to take nodes or slices from; give one."
    if "nodes" in given and partition:
        yield "names both nodes and a partition; leave the partition out."
    for name, number in {"node_count": entry.get("node_count", 1), **(entry.get("slices") or {})}.items():
        if not PROFILE.fullmatch(str(name)):
            yield f"names slices {name!r}, which cannot be a profile; give one such as 1g.10gb."
        if not NUMBER.fullmatch(str(number)) or not int(number):
            yield f"has {number!r} for {name}; give a whole number from 1 on."


def _misfits(one: Reservation, shown: Mapping[str, Shown], there: Machines, cluster: str) -> Iterator[str]:
    found = shown.get(one.name)
    if found and not found.is_ours(cluster):
        yield (
            f"The reservation {one.name} was not made by this role; give another name, or delete it with "
            f"'scontrol delete ReservationName={one.name}'."
        )
    for node in one.nodes:
        if node not in there.nodes:
            yield f"The reservation {one.name} names the node {node}, which the cluster does not have."
    if one.partition and one.partition not in there.slices:
        yield (
            f"The reservation {one.name} takes from the partition {one.partition}, which the cluster does "
            f"not have; name one of {', '.join(sorted(there.slices))}."
        )
        return
    for profile, number in one.slices.items():
        most = there.slices[one.partition].get(profile, 0)
        if number > most:
            yield (
                f"The reservation {one.name} takes {number} of {profile}, and the partition {one.partition} "
                f"has {most}; take fewer."
            )
