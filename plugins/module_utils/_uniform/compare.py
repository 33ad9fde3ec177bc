# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties in which machines differ that ought to be equal. No I/O."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Union

Value = Union[str, int, float]

HEAD = ("group", "property", "machines", "value", "most have")
# Value of a property that a machine does not have.
ABSENT = "-"
# Sections whose numbers are measured, and how far, as a part of the median, a machine may be from it.
TOLERANCES = {"memory": 0.02, "benchmark": 0.1}
# Properties of one section in which the same machines differ, before the others are only counted.
SHOWN = 3
# Machines that a row names before it counts the others.
NAMED = 4


@dataclass(frozen=True)
class Difference:
    """A property in which machines of a group differ.

    `usual` is what most have, None if no value is that of most; `odd` has the values of the other machines,
    and then of all.
    """

    group: str
    name: str
    usual: Value | None
    odd: Mapping[str, Value]


def differences(
    machines: Mapping[str, Mapping[str, Value]], groups: Mapping[str, Iterable[str]]
) -> list[Difference]:
    """Compare the machines of each group with one another.

    Args:
        machines: the properties of each machine, by names such as ``kernel.release``; their first word is
            the section. A machine without a property differs from one that has it.
        groups: names of the machines that ought to be equal; those that are not in `machines` are left out.

    Returns:
        The properties in which they differ, by group and name.
    """
    return [
        found
        for group, members in groups.items()
        for found in _of_group(group, {name: machines[name] for name in members if name in machines})
    ]


def rows(found: Sequence[Difference]) -> list[tuple[str, ...]]:
    """Return the rows of a table with `HEAD`.

    A machine that differs in much of a section, as one with an older release differs in its packages, would
    fill the table; so of each section some properties are shown, and the others are counted.
    """
    alike: dict[tuple[str, str, frozenset[str]], list[Difference]] = defaultdict(list)
    for one in found:
        alike[one.group, _section(one.name), frozenset(one.odd)].append(one)
    return [
        row for (group, section, odd), several in alike.items() for row in _rows(group, section, odd, several)
    ]


def _of_group(group: str, machines: Mapping[str, Mapping[str, Value]]) -> Iterator[Difference]:
    for name in sorted({name for properties in machines.values() for name in properties}):
        values = {machine: properties.get(name, ABSENT) for machine, properties in machines.items()}
        if len(set(values.values())) > 1:
            usual, same = _usual(list(values.values()), TOLERANCES.get(_section(name), 0.0))
            odd = {machine: value for machine, value in values.items() if value not in same}
            if odd:
                yield Difference(group, name, usual, odd)


def _usual(values: Sequence[Value], tolerance: float) -> tuple[Value | None, set[Value]]:
    """Return what most of the values are, and the values that are as good as that."""
    numbers = [value for value in values if isinstance(value, (int, float))]
    if tolerance and numbers:
        middle = median(numbers)
        same: set[Value] = {number for number in numbers if abs(number - middle) <= tolerance * abs(middle)}
        clear = 2 * sum(value in same for value in values) > len(values)
        return (middle, same) if clear else (None, set())
    (first, most), *others = Counter(values).most_common(2)
    return (None, set()) if others and others[0][1] == most else (first, {first})


def _rows(
    group: str, section: str, odd: frozenset[str], several: Sequence[Difference]
) -> Iterator[tuple[str, ...]]:
    for one in several[:SHOWN]:
        having: dict[Value, list[str]] = defaultdict(list)
        for machine, value in one.odd.items():
            having[value].append(machine)
        for value, machines in having.items():
            usual = "(they differ)" if one.usual is None else shown_text(one.usual)
            yield group, shown_text(one.name), _names(machines), shown_text(value), usual
    if len(several) > SHOWN:
        yield (
            group,
            f"{shown_text(section)}.*",
            _names(sorted(odd)),
            f"{len(several) - SHOWN} more differ",
            "",
        )


def _section(name: str) -> str:
    return name.partition(".")[0]


def _names(machines: Sequence[str]) -> str:
    more = len(machines) - NAMED
    return ", ".join(machines[:NAMED]) + (f" and {more} more" if more > 0 else "")


def shown_text(value: Value) -> str:
    """Return a value from a machine in one line, without what a terminal would take for a command."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(value)).split())
