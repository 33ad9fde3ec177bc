# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All forms of a report on how equal machines are. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from .._table import lines
from .compare import HEAD, Difference, Value, differences, rows
from .gpus import properties
from .plot import page, shown


def report(
    machines: Mapping[str, Mapping[str, Value]],
    gpus: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, Collection[str]],
) -> dict[str, Any]:
    """Compare machines that ought to be equal.

    Args:
        machines: the properties of each machine, as the module machine_properties_info returned them.
        gpus: what the module gpu_info returned for each machine, also when it failed.
        groups: names of the machines that ought to be equal.

    Returns:
        `differences`, with group, name, what most have and the odd machines; the same as `rows` of a
        table; a `summary` with a sentence for each group; both as `lines` for people; the `properties` of
        each machine; and a `page` with plots of results of benchmarks, empty without any.
    """
    whole = {name: {**told, **properties(gpus.get(name, {}))} for name, told in machines.items()}
    found = differences(whole, groups)
    table = rows(found)
    counts = [
        _counted(group, sum(name in whole for name in members), sum(one.group == group for one in found))
        for group, members in groups.items()
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


def _counted(group: str, machines: int, different: int) -> str:
    if machines < 2:
        return f"{group}: nothing to compare, as {'one machine' if machines else 'no machine'} has answered"
    if not different:
        return f"{group}: {machines} machines are alike"
    return (
        f"{group}: {machines} machines differ in {different} {'property' if different == 1 else 'properties'}"
    )
