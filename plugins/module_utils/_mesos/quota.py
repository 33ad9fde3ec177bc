# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas and weights of the roles of Mesos: compare what is there with what is declared. No I/O.

Sources: Mesos documentation, "Quota" and "Weights"; src/master/quota_handler.cpp, validation of UPDATE_QUOTA.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Amounts = dict[str, float]


class Quota(NamedTuple):
    """Guarantees and limits of a role, by resource; resources that are not named have no limit."""

    guarantees: Amounts
    limits: Amounts


NO_QUOTA = Quota({}, {})


class RequestError(ValueError):
    """The declared quotas are impossible; the text is a sentence for a user for each problem."""


def read_quotas(answer: Mapping[str, Any]) -> dict[str, Quota]:
    """Return the quotas that GET_QUOTA tells, by role; an entry without amounts is no quota."""
    found = {}
    for entry in answer.get("status", {}).get("configs") or []:
        quota = Quota(_values(entry.get("guarantees")), _values(entry.get("limits")))
        if quota != NO_QUOTA:
            found[entry["role"]] = quota
    return found


def read_request(entries: Sequence[Mapping[str, Any]]) -> dict[str, Quota]:
    """Return the quotas that are declared, by role; one that shall be absent has no amounts.

    Args:
        entries: each with `role`, and possibly `guarantees`, `limits` and `state`.

    Raises:
        RequestError: entries cannot be; a sentence for each problem.
    """
    request: dict[str, Quota] = {}
    problems: list[str] = []
    for entry in entries:
        role = entry["role"]
        wrong = list(_entry_problems(entry)) or (
            [f"The role {role} is declared twice; Mesos would heed the last only."] if role in request else []
        )
        problems += wrong
        if not wrong:
            request[role] = NO_QUOTA if entry.get("state") == "absent" else _quota(entry)
    if problems:
        raise RequestError(" ".join(problems))
    return request


def _entry_problems(entry: Mapping[str, Any]) -> Iterator[str]:
    role = entry["role"]
    problem = role_problem(role)
    if problem:
        yield problem
    elif "/" in role:
        yield f"The role {role} is nested, and Mesos 1.11 knows no quota of nested roles."
    wrong = [one for what in Quota._fields for one in _amount_problems(role, what, entry.get(what) or {})]
    yield from wrong
    if wrong or entry.get("state") == "absent":
        return
    quota = _quota(entry)
    if quota == NO_QUOTA:
        yield f"The quota of the role {role} names no amount; give limits, or state absent."
    for name, least in quota.guarantees.items():
        if least > quota.limits.get(name, math.inf):
            yield (
                f"The role {role} is guaranteed {least:g} {name}, and its limit is {quota.limits[name]:g};"
                " raise the limit or lower the guarantee."
            )


def plan_quotas(current: Mapping[str, Quota], request: Mapping[str, Quota]) -> dict[str, Quota]:
    """Return the quotas that have to be set, by role."""
    return {role: quota for role, quota in request.items() if current.get(role, NO_QUOTA) != quota}


def quota_request(quotas: Mapping[str, Quota], force: bool) -> dict[str, Any]:
    """Return the arguments of UPDATE_QUOTA, which sets all of them or none.

    Args:
        quotas: by role.
        force: whether guarantees may exceed the cluster, and limits be below what a role has.
    """
    return {
        "force": force,
        "quota_configs": [
            {
                "role": role,
                **{
                    what: {name: {"value": value} for name, value in amounts.items()}
                    for what, amounts in quota._asdict().items()
                    if amounts
                },
            }
            for role, quota in sorted(quotas.items())
        ],
    }


def read_weights(answer: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights that GET_WEIGHTS tells, by role."""
    return {entry["role"]: float(entry["weight"]) for entry in answer.get("weight_infos") or []}


def plan_weights(current: Mapping[str, float], request: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights that have to be set; a role without a weight has 1 (documentation, "Weights").

    Raises:
        RequestError: weights cannot be; a sentence for each problem.
    """
    problems = [role_problem(role) for role in request] + [
        f"The weight of the role {role} is {value}; give a number above 0."
        for role, value in request.items()
        if not 0 < _number(value) < math.inf
    ]
    if any(problems):
        raise RequestError(" ".join(filter(None, problems)))
    return {role: float(value) for role, value in request.items() if current.get(role, 1.0) != float(value)}


def role_problem(role: str) -> str:
    """Return why a name is none of a role, an empty text when it is one (src/common/roles.cpp)."""
    if role == "*":
        return ""
    for part in role.split("/"):
        if part in ("", ".", "..", "*") or part.startswith("-") or re.search(r"[\x00-\x20\x7f]", part):
            return (
                f"'{role}' is no role: no part may be empty, '.', '..' or '*', begin with '-', or have"
                " blanks."
            )
    return ""


def lines(quotas: Mapping[str, Quota], roles: Sequence[str]) -> str:
    """Return quotas as text for a diff, a line for each role."""
    words = {role: ", ".join(_words(quotas.get(role, NO_QUOTA))) or "none" for role in roles}
    return "".join(f"{role}: {quota}\n" for role, quota in words.items())


def _words(quota: Quota) -> Iterator[str]:
    for what, amounts in quota._asdict().items():
        for name, value in sorted(amounts.items()):
            yield f"{what[:-1]} {name} {value:g}"


def _values(amounts: Any) -> Amounts:
    return {name: float(scalar["value"]) for name, scalar in (amounts or {}).items()}


def _quota(entry: Mapping[str, Any]) -> Quota:
    return Quota(
        *({name: float(value) for name, value in (entry.get(what) or {}).items()} for what in Quota._fields)
    )


def _amount_problems(role: str, what: str, amounts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in amounts.items():
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_.-]*", str(name)):
            yield f"The role {role} has {what} of '{name}', which is no resource."
        elif not 0 <= _number(value) < math.inf:
            yield f"The role {role} has {what} of {value} {name}; give a number, 0 for none."


def _number(value: Any) -> float:
    """Return a value as a number, one that is none of them when it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def amounts_of(resources: Any) -> Amounts:
    """Return how much of each resource a list of resources is, scalars only."""
    found: Amounts = {}
    for resource in resources or []:
        if "scalar" in resource:
            found[resource["name"]] = found.get(resource["name"], 0.0) + float(resource["scalar"]["value"])
    return found


def sum_of(several: Sequence[Mapping[str, float]]) -> Amounts:
    """Return the sums of amounts by resource."""
    found: Amounts = {}
    for amounts in several:
        for name, value in amounts.items():
            found[name] = found.get(name, 0.0) + value
    return found


def left_of(total: Mapping[str, float], taken: Mapping[str, float]) -> Amounts:
    """Return what is left of amounts, never less than nothing."""
    return {name: max(0.0, round(value - taken.get(name, 0.0), 6)) for name, value in total.items()}


def names_of(quotas: Mapping[str, Quota]) -> list[dict[str, Any]]:
    """Return quotas as plain data, sorted by role."""
    return [{"role": role, **quota._asdict()} for role, quota in sorted(quotas.items())]
