# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All forms of a report on how equal machines are. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from .._benchmarks.neighbours import measured, suspects
from .._table import lines
from .compare import HEAD, Difference, Value, differences, rows, shown_text
from .gpus import properties
from .plot import SECTION, page, shown


def report(
    machines: Mapping[str, Mapping[str, Value]],
    gpus: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, Collection[str]],
    links: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Compare machines that ought to be equal.

    Args:
        machines: the properties of each machine, as the module machine_properties_info returned them.
        gpus: what the module gpu_info returned for each machine, also when it failed.
        groups: names of the machines that ought to be equal.
        links: of each machine, the machines at the other ends of measured links, by the name of the result.

    Returns:
        `differences`, with group, name, what most have and the odd machines; the same as `rows` of a
        table; a `summary` with a sentence for each group, and for each machine or link that is slow; both as
        `lines` for people; the `properties` of each machine; and a `page` with plots of results of
        benchmarks, empty without any.
    """
    whole = {name: {**told, **properties(gpus.get(name, {}))} for name, told in machines.items()}
    found = differences(whole, groups)
    table = rows(found)
    counts = [
        sentence
        for group, members in groups.items()
        for sentence in (
            _counted(group, sum(name in whole for name in members), sum(one.group == group for one in found)),
            *_slow(group, members, whole, links),
        )
    ]
    return {
        "differences": [asdict(one) for one in found],
        "summary": counts,
        "rows": table,
        "lines": [*counts, *(lines(HEAD, table) if table else [])],
        "properties": whole,
        "page": page(whole, _odd(found), results) if (results := shown(whole)) else "",
    }


def _odd(found: Iterable[Difference]) -> dict[str, set[str]]:
    odd: dict[str, set[str]] = {}
    for one in found:
        odd.setdefault(one.name, set()).update(one.odd)
    return odd


def _slow(
    group: str,
    members: Collection[str],
    machines: Mapping[str, Mapping[str, Value]],
    links: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Return sentences about links between the machines of a group, without signs that machines made up."""
    known = [name for name in members if name in machines]
    values = {
        name: {
            key.removeprefix(SECTION): value
            for key, value in machines[name].items()
            if key.startswith(SECTION) and isinstance(value, (int, float))
        }
        for name in known
    }
    within = [link for link in measured(values, links, {}) if link.peer in known]
    return [
        f"{group}: {shown_text(sentence)}"
        for sentences in suspects(within).values()
        for sentence in sentences
    ]


def _counted(group: str, machines: int, different: int) -> str:
    if machines < 2:
        return f"{group}: nothing to compare, as {'one machine' if machines else 'no machine'} has answered"
    if not different:
        return f"{group}: {machines} machines are alike"
    return (
        f"{group}: {machines} machines differ in {different} {'property' if different == 1 else 'properties'}"
    )
