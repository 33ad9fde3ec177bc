# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and check the accounts and qualities of service of a Slurm cluster as they are declared. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The account that Slurm makes by itself, above all others (sacctmgr(1)).
ROOT = "root"
# sacctmgr(1) writes names of accounts in lower case, and reads commas, blanks and = as its own syntax.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# useradd(8) of Debian, and names of directories with dots.
USER = re.compile(r"[a-z_][a-z0-9_.-]{0,63}")
# slurm.conf(5), ClusterName; Slurm keeps it in lower case.
CLUSTER = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
PROFILE = re.compile(r"[a-z0-9][a-z0-9._+-]{0,63}")
NUMBER = re.compile(r"[0-9]{1,9}")
FAIRSHARE_OF_PARENT = "parent"
BY_PROFILE = ("slices", "slice_hours")
LIMITS = ("gpus", "slices", "cpus", "memory", "jobs", "gpu_hours", "slice_hours", "cpu_hours")


class AccountsProblem(ValueError):
    """The declared accounts cannot be; sentences say what, why, and what to do."""


@dataclass(frozen=True)
class Limits:
    """The most that may be used, in Slurm's words (sacctmgr(1), slurm.conf(5) of AccountingStorageTRES).

    `running` and `minutes` map trackable resources (TRES) such as `gres/gpu` to the number that running jobs
    hold together, and to the minutes that jobs use in all; memory (`mem`) is in MiB. `jobs` run together.
    """

    running: Mapping[str, int] = field(default_factory=dict)
    minutes: Mapping[str, int] = field(default_factory=dict)
    jobs: int | None = None

    def resources(self) -> set[str]:
        """Return the names of the resources that are limited."""
        return {*self.running, *self.minutes}


@dataclass(frozen=True)
class Account:
    """An account: whom it admits, below which other one it is, and what it may use.

    `fairshare` is a number of shares, or `parent` for users who compete as those of the account above.
    `qualities` are names of qualities of service, the default one first; None leaves those of the parent.
    """

    name: str
    parent: str = ROOT
    fairshare: str = "1"
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    limits: Limits = Limits()
    user_limits: Limits = Limits()
    qualities: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Quality:
    """A quality of service: a priority, the longest job in minutes, and limits of all and of each user."""

    name: str
    priority: int = 0
    longest: int | None = None
    limits: Limits = Limits()
    user_limits: Limits = Limits()


@dataclass(frozen=True)
class Request:
    """All that is declared; accounts stand behind those above them."""

    accounts: tuple[Account, ...] = ()
    qualities: tuple[Quality, ...] = ()

    def resources(self) -> set[str]:
        """Return the names of the resources that are limited anywhere."""
        entries: tuple[Account | Quality, ...] = (*self.accounts, *self.qualities)
        return {
            name for one in entries for each in (one.limits, one.user_limits) for name in each.resources()
        }


def read_request(accounts: Sequence[Mapping[str, Any]], qualities: Sequence[Mapping[str, Any]]) -> Request:
    """Return what is declared, with accounts behind those above them.

    Args:
        accounts: maps with `name`, and optionally `parent`, `fairshare`, `users`, `groups`, `limits`,
            `user_limits` and `qos`; None is as if a key were not there.
        qualities: maps with `name`, and optionally `priority`, `longest_job` (hours), `limits` and
            `user_limits`.

    Raises:
        AccountsProblem: something is wrong; all of it is told, a sentence each.
    """
    request, wrong = _read(accounts, qualities)
    if wrong:
        raise AccountsProblem(" ".join(wrong))
    return request


def problems(
    cluster: str, accounts: Sequence[Mapping[str, Any]], qualities: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return what is wrong with the name of a cluster and with declared accounts, one sentence each."""
    wrong = [] if CLUSTER.fullmatch(cluster) else [wrong_cluster(cluster)]
    return wrong + _read(accounts, qualities)[1]


def wrong_cluster(name: str) -> str:
    """Return what is wrong with the name of a cluster."""
    return (
        f"{name!r} cannot be the name of a cluster; give ClusterName of slurm.conf, in lower case, as Slurm "
        "keeps it."
    )


def _read(
    accounts: Sequence[Mapping[str, Any]], qualities: Sequence[Mapping[str, Any]]
) -> tuple[Request, list[str]]:
    read_accounts = [_account(_known(one)) for one in accounts]
    read_qualities = [_quality(_known(one)) for one in qualities]
    wrong = [*_wrong_accounts(read_accounts), *_wrong_qualities(read_qualities)]
    for one in (*accounts, *qualities):
        for key in ("limits", "user_limits"):
            wrong += _wrong_limits(f"{key} of {one.get('name')}", _known(one.get(key) or {}))
    ordered = () if wrong else tuple(_parents_first(read_accounts))
    return Request(ordered, tuple(read_qualities)), wrong


def _known(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}


def _account(entry: Mapping[str, Any]) -> Account:
    qualities = entry.get("qos")
    return Account(
        name=str(entry["name"]),
        parent=str(entry.get("parent", ROOT)),
        fairshare=str(entry.get("fairshare", 1)),
        users=tuple(str(one) for one in entry.get("users", ())),
        groups=tuple(str(one) for one in entry.get("groups", ())),
        limits=_limits(_known(entry.get("limits", {}))),
        user_limits=_limits(_known(entry.get("user_limits", {}))),
        qualities=tuple(str(one) for one in qualities) if qualities else None,
    )


def _quality(entry: Mapping[str, Any]) -> Quality:
    hours = entry.get("longest_job")
    return Quality(
        name=str(entry["name"]),
        priority=int(entry.get("priority", 0)),
        longest=None if hours is None else int(hours) * 60,
        limits=_limits(_known(entry.get("limits", {}))),
        user_limits=_limits(_known(entry.get("user_limits", {}))),
    )


def _limits(entry: Mapping[str, Any]) -> Limits:
    slices, slice_hours = (
        found if isinstance(found := entry.get(key, {}), Mapping) else {} for key in BY_PROFILE
    )
    running = {f"gres/gpu:{name}": _number(number) for name, number in slices.items()}
    minutes = {f"gres/gpu:{name}": _number(hours) * 60 for name, hours in slice_hours.items()}
    for key, resource, of_one in (("gpus", "gres/gpu", 1), ("cpus", "cpu", 1), ("memory", "mem", 1024)):
        if key in entry:
            running[resource] = _number(entry[key]) * of_one
    for key, resource in (("gpu_hours", "gres/gpu"), ("cpu_hours", "cpu")):
        if key in entry:
            minutes[resource] = _number(entry[key]) * 60
    return Limits(running, minutes, _number(entry["jobs"]) if "jobs" in entry else None)


def _number(value: object) -> int:
    """Return a whole number; 0 for what is none, which `_wrong_limits` tells."""
    return int(str(value)) if NUMBER.fullmatch(str(value)) else 0


def _wrong_accounts(accounts: Sequence[Account]) -> Iterator[str]:
    yield from _wrong_names("account", (one.name for one in accounts))
    parents = {one.name: one.parent for one in accounts}
    for one in accounts:
        if one.name == ROOT:
            yield "The account root belongs to Slurm; give the account another name."
        if not NAME.fullmatch(one.parent):
            yield f"The parent {one.parent!r} of the account {one.name} cannot be an account; correct it."
        if _is_below_itself(one.name, parents):
            yield f"The account {one.name} is below itself; correct the parents."
        if len({*(one.qualities or ())}) < len(one.qualities or ()):
            yield f"The account {one.name} names a quality of service twice; name each once."
        for user in one.users:
            if not USER.fullmatch(user):
                yield f"The account {one.name} has the user {user!r}, which cannot be a login; correct it."
        if one.fairshare != FAIRSHARE_OF_PARENT and not re.fullmatch(r"[1-9][0-9]{0,8}", one.fairshare):
            yield (
                f"The account {one.name} has the fairshare {one.fairshare!r}; give a number from 1 on, "
                "or parent."
            )


def _wrong_qualities(qualities: Sequence[Quality]) -> Iterator[str]:
    yield from _wrong_names("quality of service", (one.name for one in qualities))
    for one in qualities:
        if one.priority < 0:
            yield f"The quality of service {one.name} has the priority {one.priority}; give 0 or more."
        if one.longest is not None and one.longest <= 0:
            yield f"The quality of service {one.name} admits no job; give longest_job 1 or more hours."
        if {*one.user_limits.minutes} or one.user_limits.jobs is not None:
            yield (
                f"The quality of service {one.name} limits hours or jobs of each user, which Slurm cannot; "
                "use user_limits of an account for that."
            )


def _wrong_names(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if not NAME.fullmatch(name):
            yield (
                f"The {kind} {name!r} has a name that Slurm does not take; use at most 64 lower-case "
                "letters, digits and ._- in it."
            )
        if times > 1:
            yield f"The {kind} {name} is declared twice; declare it once."


def _wrong_limits(of: str, entry: Mapping[str, Any]) -> Iterator[str]:
    unknown = sorted(str(key) for key in entry if key not in LIMITS)
    if unknown:
        yield f"The {of} have {', '.join(unknown)}, which is no limit; name some of {', '.join(LIMITS)}."
    if not all(isinstance(entry.get(key, {}), Mapping) for key in BY_PROFILE):
        yield f"The {of} have slices that are no map of numbers by profile; give one such as {{1g.10gb: 2}}."
        return
    plain = {key: value for key, value in entry.items() if key not in BY_PROFILE}
    by_profile = {
        f"{key} {name}": value for key in BY_PROFILE for name, value in (entry.get(key) or {}).items()
    }
    for key, value in {**plain, **by_profile}.items():
        if not NUMBER.fullmatch(str(value)):
            yield f"The {of} have {value!r} for {key}; give a whole number from 0 on."
    for name in {**entry.get("slices", {}), **entry.get("slice_hours", {})}:
        if not PROFILE.fullmatch(str(name)):
            yield f"The {of} name slices {name!r}, which cannot be a profile; give one such as 1g.10gb."


def _is_below_itself(name: str, parents: Mapping[str, str]) -> bool:
    seen = name
    for _step in parents:
        seen = parents.get(seen, ROOT)
        if seen == name:
            return True
    return False


def _parents_first(accounts: Sequence[Account]) -> Iterator[Account]:
    left = list(accounts)
    while left:
        names = {one.name for one in left}
        ready = [one for one in left if one.parent not in names]
        yield from ready
        left = [one for one in left if one not in ready]
