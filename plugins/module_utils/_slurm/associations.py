# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurmdbd has of accounts, and the commands of sacctmgr that make it as declared. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .accounts import ROOT, Account, AccountsProblem, Limits, Quality, Request

# Organization of the accounts, and description of the qualities, that were made here; no others are changed.
MARK = "gpufarm"
# What sacctmgr(1) reads as "no limit".
NONE = "-1"
# Columns of `sacctmgr show`, in the order in which the functions below read them.
ASSOCIATIONS = "Account,ParentName,User,Fairshare,GrpTRES,GrpTRESMins,GrpJobs,QOS,DefaultQOS"
ACCOUNTS = "Account,Organization"
QUALITIES = "Name,Description,Priority,MaxWall,GrpTRES,GrpTRESMins,GrpJobs,MaxTRESPU"
USERS = "User,DefaultAccount"
RESOURCES = "Type,Name"
_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


@dataclass(frozen=True)
class Entry:
    """An account of a cluster, or a user in it."""

    parent: str = ""
    fairshare: str = "1"
    limits: Limits = field(default_factory=Limits)
    qualities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Books:
    """What slurmdbd has.

    Attributes:
        accounts: accounts of the cluster by name, without root.
        users: users by account and login.
        qualities: qualities of service by name.
        ours: names of the accounts, and of the qualities, that were made here.
        defaults: the account of jobs that name none, by login.
        resources: names of the trackable resources (TRES).
    """

    accounts: Mapping[str, Entry] = field(default_factory=dict)
    users: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    qualities: Mapping[str, Quality] = field(default_factory=dict)
    ours: frozenset[str] = frozenset()
    our_qualities: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict)
    resources: frozenset[str] = frozenset()

    def shown(self) -> dict[str, Any]:
        """Return what was made here, for a diff."""
        return {
            "qos": {name: _shown_quality(self.qualities[name]) for name in sorted(self.our_qualities)},
            "accounts": {
                name: {
                    **_shown_entry(self.accounts[name]),
                    "users": {
                        user: _shown_limits(entry.limits)
                        for (account, user), entry in sorted(self.users.items())
                        if account == name
                    },
                }
                for name in sorted(self.ours & set(self.accounts))
            },
        }


def read_books(answers: Mapping[str, str]) -> Books:
    """Return what slurmdbd has.

    Args:
        answers: output of `sacctmgr --noheader --parsable2 show ...` by the columns that were asked for:
            `ASSOCIATIONS`, `ACCOUNTS`, `QUALITIES`, `USERS` and `RESOURCES`.
    """
    accounts, users = {}, {}
    for account, parent, user, fairshare, running, minutes, jobs, qualities, default in _rows(
        answers, ASSOCIATIONS
    ):
        limits = Limits(_resources(running), _resources(minutes), int(jobs) if jobs else None)
        names = sorted(name for name in qualities.split(",") if name and name != default)
        entry = Entry(parent, fairshare, limits, (*([default] if default else []), *names))
        if user:
            users[account, user] = entry
        elif account != ROOT:
            accounts[account] = entry
    qualities_of = {
        name: Quality(
            name,
            int(priority or 0),
            _minutes(longest),
            Limits(_resources(running), _resources(minutes), int(jobs) if jobs else None),
            Limits(_resources(of_user)),
        )
        for name, _about, priority, longest, running, minutes, jobs, of_user in _rows(answers, QUALITIES)
    }
    return Books(
        accounts,
        users,
        qualities_of,
        frozenset(name for name, organization in _rows(answers, ACCOUNTS) if organization == MARK),
        frozenset(row[0] for row in _rows(answers, QUALITIES) if row[1] == MARK),
        {row[0]: row[1] for row in _rows(answers, USERS)},
        frozenset("/".join(filter(None, row)) for row in _rows(answers, RESOURCES)),
    )


def wanted(request: Request, books: Books, members: Mapping[str, Sequence[str]]) -> Books:
    """Return what slurmdbd shall have.

    Args:
        members: logins of each group that the request names.

    Raises:
        AccountsProblem: slurmdbd cannot have the request; all reasons are told.
    """
    wrong = list(_refusals(request, books))
    if wrong:
        raise AccountsProblem(" ".join(wrong))
    names = {one.name for one in request.accounts}
    kept = {name: one for name, one in books.accounts.items() if name not in books.ours}
    users = {key: one for key, one in books.users.items() if key[0] not in books.ours | names}
    accounts: dict[str, Entry] = {}
    for one in request.accounts:
        accounts[one.name] = Entry(one.parent, one.fairshare, one.limits, _qualities(one, accounts, books))
        for user in _logins(one, members):
            before = books.users.get((one.name, user), Entry())
            users[one.name, user] = Entry("", before.fairshare, one.user_limits, accounts[one.name].qualities)
    others = {name: one for name, one in books.qualities.items() if name not in books.our_qualities}
    return Books(
        {**kept, **accounts},
        users,
        {**others, **{one.name: one for one in request.qualities}},
        frozenset(names),
        frozenset(one.name for one in request.qualities),
        _defaults(books.defaults, users),
        books.resources,
    )


def commands(before: Books, after: Books, cluster: str) -> list[list[str]]:
    """Return the arguments of sacctmgr, call by call, that lead from one state to another.

    What is new comes first, then what moves, so that an interrupted run leaves nobody without an account who
    shall have one.
    """
    here = f"cluster={cluster}"
    calls: list[list[str]] = []
    for name in sorted(after.our_qualities):
        calls += _quality_calls(name, before.qualities.get(name), after.qualities[name])
    for name in [one for one in after.accounts if one in after.ours]:
        if name not in before.accounts:
            about = [f"description={name}", f"organization={MARK}", f"parent={after.accounts[name].parent}"]
            calls.append(["add", "account", f"name={name}", here, *about])
        changed = _entry_changes(
            before.accounts.get(name, Entry(after.accounts[name].parent)), after.accounts[name]
        )
        if changed:
            calls.append(["modify", "account", "where", f"name={name}", here, "set", *changed])
    for (account, user), entry in sorted(after.users.items()):
        if account in after.ours:
            if (account, user) not in before.users:
                calls.append(["add", "user", f"name={user}", f"account={account}", here])
            changed = _limit_changes(before.users.get((account, user), Entry()).limits, entry.limits)
            if changed:
                where = ["where", f"name={user}", f"account={account}", here]
                calls.append(["modify", "user", *where, "set", *changed])
    for user, account in sorted(after.defaults.items()):
        if before.defaults.get(user, account) != account:
            calls.append(
                ["modify", "user", "where", f"name={user}", here, "set", f"defaultaccount={account}"]
            )
    return [*calls, *_removals(before, after, here)]


def _removals(before: Books, after: Books, here: str) -> Iterator[list[str]]:
    for account, user in sorted(set(before.users) - set(after.users)):
        if account in after.ours:
            yield ["delete", "user", "where", f"name={user}", f"account={account}", here]
    gone = {name: before.accounts[name] for name in before.accounts if name not in after.accounts}
    for name in sorted(gone, key=lambda one: (-_depth(one, before.accounts), one)):
        yield ["delete", "account", "where", f"name={name}", here]
    for name in sorted(before.our_qualities - after.our_qualities):
        yield ["delete", "qos", "where", f"name={name}"]


def _refusals(request: Request, books: Books) -> Iterator[str]:
    names = {one.name for one in request.accounts}
    qualities = {one.name for one in request.qualities}
    for account in request.accounts:
        if account.name in books.accounts and account.name not in books.ours:
            yield (
                f"The account {account.name} was not made by this role; give another name, or hand it over: "
                f"'sacctmgr modify account {account.name} set organization={MARK}'."
            )
        if account.parent not in {ROOT, *names, *books.accounts}:
            yield f"The account {account.name} is below {account.parent}, which is none; declare that one."
        elif account.parent in books.ours - names:
            yield (
                f"The account {account.name} is below {account.parent}, which is no longer declared; "
                "declare that account."
            )
        for name in account.qualities or ():
            if name not in qualities | (set(books.qualities) - books.our_qualities):
                yield f"The quality of service {name} of the account {account.name} is none; declare it."
    for name in sorted((qualities & set(books.qualities)) - books.our_qualities):
        yield (
            f"The quality of service {name} was not made by this role; give another name, or hand it over: "
            f"'sacctmgr modify qos {name} set description={MARK}'."
        )
    unknown = sorted(request.resources() - books.resources)
    if unknown:
        yield (
            f"Slurm does not count {', '.join(unknown)}; use profiles of its nodes, and set up the "
            "controller first, which tells Slurm what they have."
        )


def _qualities(account: Account, above: Mapping[str, Entry], books: Books) -> tuple[str, ...]:
    """Return the qualities of an account: its own, or those of the account above."""
    if account.qualities is not None:
        return (account.qualities[0], *sorted(account.qualities[1:]))
    if account.parent in above:
        return above[account.parent].qualities
    if account.parent in books.accounts:
        return books.accounts[account.parent].qualities
    return ("normal",)  # which slurmdbd makes and gives to root


def _logins(account: Account, members: Mapping[str, Sequence[str]]) -> list[str]:
    return sorted({*account.users, *(login for group in account.groups for login in members[group])})


def _defaults(now: Mapping[str, str], users: Mapping[tuple[str, str], Entry]) -> dict[str, str]:
    """Return the account of jobs that name none: the present one while the user has it, else the first."""
    chosen: dict[str, str] = {}
    for account, user in sorted(users):
        if now.get(user) in (account, None, "") or user not in chosen:
            chosen[user] = account if (now.get(user, ""), user) not in users else now[user]
    return chosen


def _depth(name: str, accounts: Mapping[str, Entry]) -> int:
    depth = 0
    while name in accounts and depth <= len(accounts):
        name, depth = accounts[name].parent, depth + 1
    return depth


def _quality_calls(name: str, now: Quality | None, quality: Quality) -> Iterator[list[str]]:
    if now is None:
        yield ["add", "qos", f"name={name}", f"description={MARK}"]
    now = now or Quality(name)
    changes = _limit_changes(now.limits, quality.limits)
    if now.priority != quality.priority:
        changes.append(f"Priority={quality.priority}")
    if now.longest != quality.longest:
        changes.append(f"MaxWall={NONE if quality.longest is None else quality.longest}")
    changes += _resource_changes("MaxTRESPerUser", now.user_limits.running, quality.user_limits.running)
    if changes:
        yield ["modify", "qos", "where", f"name={name}", "set", *changes]


def _entry_changes(now: Entry, entry: Entry) -> list[str]:
    changes = _limit_changes(now.limits, entry.limits)
    if now.parent != entry.parent:
        changes.append(f"parent={entry.parent}")
    if now.fairshare != entry.fairshare:
        changes.append(f"fairshare={entry.fairshare}")
    if now.qualities != entry.qualities:
        changes += [f"qos={','.join(entry.qualities)}", f"defaultqos={entry.qualities[0]}"]
    return changes


def _limit_changes(now: Limits, limits: Limits) -> list[str]:
    changes = [
        *_resource_changes("GrpTRES", now.running, limits.running),
        *_resource_changes("GrpTRESMins", now.minutes, limits.minutes),
    ]
    if now.jobs != limits.jobs:
        changes.append(f"GrpJobs={NONE if limits.jobs is None else limits.jobs}")
    return changes


def _resource_changes(option: str, now: Mapping[str, int], then: Mapping[str, int]) -> list[str]:
    """Return the option that makes one set of limits another; -1 ends a limit (sacctmgr(1))."""
    if now == then:
        return []
    words = {**dict.fromkeys(now, NONE), **{name: str(number) for name, number in then.items()}}
    return [f"{option}={','.join(f'{name}={word}' for name, word in sorted(words.items()))}"]


def _rows(answers: Mapping[str, str], columns: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("|")) for line in answers[columns].splitlines() if line]


def _resources(text: str) -> dict[str, int]:
    """Return limits such as `cpu=16,gres/gpu=4,mem=256G`, memory in MiB."""
    found = {}
    for word in filter(None, text.split(",")):
        name, _, number = word.rpartition("=")
        unit = _UNITS.get(number[-1:], 0)
        found[name] = round(float(number[:-1]) * unit) if unit else int(number)
    return found


def _minutes(text: str) -> int | None:
    """Return minutes of `[days-]hours:minutes:seconds`; None for nothing."""
    if not text:
        return None
    days, _, clock = text.rpartition("-")
    hours, minutes, _seconds = (int(part) for part in clock.split(":"))
    return int(days or 0) * 1440 + hours * 60 + minutes


def _shown_limits(limits: Limits) -> dict[str, Any]:
    jobs = {} if limits.jobs is None else {"jobs": limits.jobs}
    minutes = {f"{name} minutes": number for name, number in limits.minutes.items()}
    return dict(sorted({**limits.running, **minutes, **jobs}.items()))


def _shown_entry(entry: Entry) -> dict[str, Any]:
    return {
        "parent": entry.parent,
        "fairshare": entry.fairshare,
        "qos": list(entry.qualities),
        "limits": _shown_limits(entry.limits),
    }


def _shown_quality(quality: Quality) -> dict[str, Any]:
    return {
        "priority": quality.priority,
        "longest minutes": quality.longest,
        "limits": _shown_limits(quality.limits),
        "user limits": _shown_limits(quality.user_limits),
    }
