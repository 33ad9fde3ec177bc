# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts that slurmdbd has, and the commands of sacctmgr that make them as declared. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .accounts import ROOT, USER, Account, AccountsProblem, Limits, Quality, Request

# The number that sacctmgr(1) reads as "no limit".
NONE = "-1"
# Columns of `sacctmgr show`, in the order in which the functions below read them.
ASSOCIATIONS = "Cluster,Account,ParentName,User,Fairshare,GrpTRES,GrpTRESMins,GrpJobs,QOS,DefaultQOS"
ACCOUNTS = "Account,Organization"
QUALITIES = "Name,Priority,MaxWall,GrpTRES,GrpTRESMins,GrpJobs,MaxTRESPU,Description"
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
    default: str = ""

    @property
    def choice(self) -> tuple[tuple[str, ...], str]:
        """Return the qualities of service that jobs can have, and the one that they have by default."""
        return self.qualities, self.default


def mark(cluster: str) -> str:
    """Return the organization of the accounts, and the description of the qualities, that were made here.

    No others are ever changed. No account can have such a name, which Slurm takes for the organization of
    accounts that were made without one.
    """
    return f"made by gpufarm.cluster for {cluster}"


@dataclass(frozen=True)
class Books:
    """Accounts, users and qualities of service of slurmdbd.

    Attributes:
        accounts: accounts of the cluster by name, with root.
        users: users by account and login.
        qualities: qualities of service by name.
        ours: names of the accounts that were made here; some may be gone from the cluster.
        our_qualities: names of the qualities that were made here.
        rows: names of all accounts, of any cluster or none.
        elsewhere: names of the accounts of other clusters.
        defaults: the account of jobs that name none, by login, which may be one of another cluster.
        resources: names of the trackable resources (TRES).
    """

    accounts: Mapping[str, Entry] = field(default_factory=dict)
    users: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    qualities: Mapping[str, Quality] = field(default_factory=dict)
    ours: frozenset[str] = frozenset()
    our_qualities: frozenset[str] = frozenset()
    rows: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
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


def read_books(answers: Mapping[str, str], cluster: str) -> Books:
    """Return what slurmdbd has.

    Args:
        answers: output of `sacctmgr --noheader --parsable2 show ...` by the columns that were asked for:
            `ASSOCIATIONS` of all clusters, `ACCOUNTS`, `QUALITIES`, `USERS` and `RESOURCES`.
        cluster: its name.
    """
    accounts, users, elsewhere = {}, {}, set()
    for of, *row in _rows(answers, ASSOCIATIONS):
        if of != cluster:
            elsewhere.add(row[0])
            continue
        account, parent, user, fairshare, running, minutes, jobs, qualities, default = row
        limits = Limits(_resources(running), _resources(minutes), int(jobs) if jobs else None)
        entry = Entry(parent, fairshare, limits, tuple(sorted(filter(None, qualities.split(",")))), default)
        if user:
            users[account, user] = entry
        else:
            accounts[account] = entry
    qualities_of = {
        name: Quality(
            name,
            int(priority or 0),
            _minutes(longest),
            Limits(_resources(running), _resources(minutes), int(jobs) if jobs else None),
            Limits(_resources(of_user)),
        )
        for name, priority, longest, running, minutes, jobs, of_user, _about in _rows(answers, QUALITIES)
    }
    ours = mark(cluster)
    return Books(
        accounts,
        users,
        qualities_of,
        frozenset(name for name, organization in _rows(answers, ACCOUNTS) if organization == ours),
        frozenset(row[0] for row in _rows(answers, QUALITIES) if row[-1] == ours),
        frozenset(row[0] for row in _rows(answers, ACCOUNTS)),
        frozenset(elsewhere - {ROOT}),
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
    wrong = list(_refusals(request, books, members))
    if wrong:
        raise AccountsProblem(" ".join(wrong))
    names = {one.name for one in request.accounts}
    accounts = {name: one for name, one in books.accounts.items() if name not in books.ours}
    users = {key: one for key, one in books.users.items() if key[0] not in books.ours | names}
    for one in request.accounts:
        # Without qualities of its own an account has those of the account above.
        above = accounts.get(one.parent, Entry(qualities=("normal",)))
        own = one.qualities
        qualities, default = (tuple(sorted(own)), own[0]) if own else (above.qualities, above.default)
        accounts[one.name] = Entry(one.parent, one.fairshare, one.limits, qualities, default)
        for user in _logins(one, members):
            users[one.name, user] = Entry(limits=one.user_limits)
    others = {name: one for name, one in books.qualities.items() if name not in books.our_qualities}
    return Books(
        accounts,
        users,
        {**others, **{one.name: one for one in request.qualities}},
        frozenset(names),
        frozenset(one.name for one in request.qualities),
        books.rows | names,
        books.elsewhere,
        books.defaults,
        books.resources,
    )


def commands(before: Books, after: Books, cluster: str) -> list[list[str]]:
    """Return the arguments of sacctmgr, call by call, that lead from one state to another.

    New objects come first, then those that move, then those that go, so that an interrupted run leaves nobody
    without an account who shall have one.
    """
    here = f"cluster={cluster}"
    calls: list[list[str]] = []
    for name in sorted(after.our_qualities):
        calls += _quality_calls(name, before.qualities.get(name), after.qualities[name], mark(cluster))
    for name in [one for one in after.accounts if one in after.ours]:
        calls += _account_calls(name, before, after, cluster)
    for (account, user), entry in sorted(after.users.items()):
        if account in after.ours:
            if (account, user) not in before.users:
                calls.append(["add", "user", f"name={user}", f"account={account}", here])
            changed = _limit_changes(before.users.get((account, user), Entry()).limits, entry.limits)
            if changed:
                where = ["where", f"name={user}", f"account={account}", here]
                calls.append(["modify", "user", *where, "set", *changed])
    return [*calls, *_removals(before, after, cluster)]


def _account_calls(name: str, before: Books, after: Books, cluster: str) -> Iterator[list[str]]:
    entry, here = after.accounts[name], f"cluster={cluster}"
    above = after.accounts.get(entry.parent, Entry()).choice
    now = before.accounts.get(name)
    if now is None:
        about = [f"description={name}", f"organization={mark(cluster)}", f"parent={entry.parent}"]
        yield ["add", "account", f"name={name}", here, *about]
        now = Entry(entry.parent, qualities=above[0], default=above[1])
    if name in before.rows - before.ours:
        # A row of slurmdbd that stayed when the account went keeps its organization.
        yield ["modify", "account", "where", f"name={name}", "set", f"organization={mark(cluster)}"]
    changed = _entry_changes(now, entry)
    was_above = before.accounts.get(now.parent, Entry()).choice
    # Its former choice may have been that of the account above, which is another one or changes.
    if now.choice != entry.choice or (was_above != above and name in before.accounts):
        # Nothing stands for those of the account above.
        own = entry.choice != above
        changed += [
            f"qos={','.join(entry.qualities) if own else ''}",
            f"defaultqos={entry.default if own else NONE}",
        ]
    if changed:
        yield ["modify", "account", "where", f"name={name}", here, "set", *changed]


def _removals(before: Books, after: Books, cluster: str) -> Iterator[list[str]]:
    here = f"cluster={cluster}"
    gone = sorted(set(before.users) - set(after.users))
    # Slurm deletes no user's default account while the user has another one.
    for account, user in gone:
        left = [name for name, login in sorted(after.users) if login == user]
        if before.defaults.get(user) == account and left:
            yield ["modify", "user", "where", f"name={user}", here, "set", f"defaultaccount={left[0]}"]
    for account, user in sorted(gone, key=lambda one: (before.defaults.get(one[1]) == one[0], one)):
        yield ["delete", "user", "where", f"name={user}", f"account={account}", here]
    names = [name for name in before.accounts if name not in after.accounts]
    for name in sorted(names, key=lambda one: (-_depth(one, before.accounts), one)):
        yield ["delete", "account", "where", f"name={name}", here]
    # The rows stay in slurmdbd, with the hours; an account that somebody else makes of one later is not ours.
    for name in sorted(before.ours - after.ours):
        yield ["modify", "account", "where", f"name={name}", "set", f"organization={name}"]
    for name in sorted(before.our_qualities - after.our_qualities):
        yield ["delete", "qos", "where", f"name={name}"]


def _refusals(request: Request, books: Books, members: Mapping[str, Sequence[str]]) -> Iterator[str]:
    names = {one.name for one in request.accounts}
    qualities = {one.name for one in request.qualities}
    for account in request.accounts:
        yield from _refused(account, names, qualities, books)
        for group in account.groups:
            yield from _refused_members(account.name, group, members[group])
    for name in sorted((qualities & set(books.qualities)) - books.our_qualities):
        yield (
            f"The quality of service {name} was not made by this role for this cluster; give another "
            "name, or hand it over as the README says."
        )
    for name, entry in books.accounts.items():
        if name not in books.ours and entry.parent in books.ours - names:
            yield (
                f"The account {name}, which this role did not make, is below {entry.parent}, which is no "
                "longer declared; move it first, or declare that one."
            )
    unknown = sorted(request.resources() - books.resources)
    if unknown:
        yield (
            f"Slurm does not count {', '.join(unknown)}; use profiles of its nodes, and set up the "
            "controller first, which tells Slurm what they have."
        )


def _refused(account: Account, names: set[str], qualities: set[str], books: Books) -> Iterator[str]:
    if account.name in books.elsewhere:
        yield f"The account {account.name} is one of another cluster of this slurmdbd; give another name."
    elif account.name in books.accounts and account.name not in books.ours:
        yield (
            f"The account {account.name} was not made by this role for this cluster; give another name, or "
            "hand it over as the README says."
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


def _refused_members(account: str, group: str, members: Sequence[str]) -> Iterator[str]:
    if not members:
        yield (
            f"The group {group} of the account {account} has no members on this host; correct the name or "
            "the directory, or leave the group out."
        )
    for user in members:
        if not USER.fullmatch(user):
            yield f"The member {user!r} of the group {group} cannot be a login of Slurm; take it out."


def _logins(account: Account, members: Mapping[str, Sequence[str]]) -> list[str]:
    return sorted({*account.users, *(login for group in account.groups for login in members[group])})


def _depth(name: str, accounts: Mapping[str, Entry]) -> int:
    depth = 0
    while name in accounts and depth <= len(accounts):
        name, depth = accounts[name].parent, depth + 1
    return depth


def _quality_calls(name: str, now: Quality | None, quality: Quality, about: str) -> Iterator[list[str]]:
    if now is None:
        yield ["add", "qos", f"name={name}", f"description={about}"]
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
    last = columns.count(",")  # only the last column has words of people, which may have a | in them
    return [tuple(line.split("|", last)) for line in answers[columns].splitlines() if line]


def _resources(text: str) -> dict[str, int]:
    """Return limits such as `cpu=16,gres/gpu=4,mem=256G`, memory in MiB."""
    found = {}
    for word in filter(None, text.split(",")):
        name, _equals, number = word.rpartition("=")
        unit = _UNITS.get(number[-1:], 0)
        found[name] = round(float(number[:-1]) * unit) if unit else int(number)
    return found


def _minutes(text: str) -> int | None:
    """Return minutes of `[days-]hours:minutes:seconds`; None for nothing."""
    if not text:
        return None
    days, _dash, clock = text.rpartition("-")
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
        "default qos": entry.default,
        "limits": _shown_limits(entry.limits),
    }


def _shown_quality(quality: Quality) -> dict[str, Any]:
    return {
        "priority": quality.priority,
        "longest minutes": quality.longest,
        "limits": _shown_limits(quality.limits),
        "user limits": _shown_limits(quality.user_limits),
    }
