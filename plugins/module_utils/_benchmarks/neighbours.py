# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machine, or which link between two, makes measured links slow. No I/O.

A machine whose links to all its neighbours are slow is slow itself. A slow link of machines that are fast
with others is at fault itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from .results import LESS_IS_BETTER, Results

# Beginnings of names of values of links between machines.
PREFIXES = ("link.", "mpi.", "rdma.")
# How many times worse than usual slow links are. A link with half of its lanes or an older rate has half of
# the bandwidth or less. The times of links through one switch and through three differ by less than two.
SLOWER, LONGER = 4 / 3, 2.0


@dataclass(frozen=True)
class Link:
    """A value of a link between two machines; None if it could not be measured."""

    name: str
    machine: str
    peer: str
    value: float | None


def measured(
    values: Mapping[str, Mapping[str, float]],
    others: Mapping[str, Mapping[str, str]],
    failures: Mapping[str, Iterable[Mapping[str, str]]],
) -> list[Link]:
    """Return the links that machines have measured, or could not measure.

    Args:
        values: by name, of each machine.
        others: of each machine, the machines at the other ends of its links, by the name of the value.
        failures: of each machine, with `peer`, the other end, and `prefix`, the beginning of the names of
            values that could not be measured now. Values of earlier runs do not count then.
    """
    names = sorted({name for own in others.values() for name in own})
    found = []
    for machine, own in values.items():
        peers = others.get(machine, {})
        failed = {
            name: failure["peer"]
            for failure in failures.get(machine, ())
            for name in names
            if name.startswith(failure["prefix"])
        }
        found += [Link(name, machine, peer, None) for name, peer in failed.items()]
        found += [
            Link(name, machine, peers[name], own[name])
            for name in peers
            if name in own and name not in failed
        ]
    return found


def neighbours(results: Results) -> dict[str, str]:
    """Return the machine at the other end of each measured link, by the name of the value."""
    return {
        name: results.ends[name].split(" ")[0]
        for name in results.values
        if name.startswith(PREFIXES) and name in results.ends
    }


def suspects(links: Iterable[Link]) -> dict[str, list[str]]:
    """Return sentences about slow machines and links, by a machine each: of a link, the one that measured it.

    Args:
        links: of machines that ought to be equal.
    """
    named: dict[str, list[Link]] = defaultdict(list)
    for link in links:
        named[link.name].append(link)
    found: dict[str, list[str]] = defaultdict(list)
    for name, same in sorted(named.items()):
        for machine, sentence in _of_value(name, same):
            found[machine].append(sentence)
    return dict(found)


def _of_value(name: str, links: Sequence[Link]) -> Iterable[tuple[str, str]]:
    usual = _usual(name, links)
    slow = [link for link in links if _is_slow(link, usual)]
    if len(slow) == len(links):  # none to compare with
        return
    around: dict[str, dict[str, list[Link]]] = defaultdict(lambda: defaultdict(list))
    for link in links:
        around[link.machine][link.peer].append(link)
        around[link.peer][link.machine].append(link)
    guilty = [
        machine
        for machine, neighbours in around.items()
        if len(neighbours) > 1 and all(any(link in slow for link in some) for some in neighbours.values())
    ]
    for machine in guilty:
        told = " and ".join(
            f"{_shown(link)} with {neighbour}"
            for neighbour, some in around[machine].items()
            for link in some
            if link in slow
        )
        yield (
            machine,
            f"{machine} is slow with all its neighbours: {name} is {told}, and usually {usual:.4g}; look at "
            "its adapter, its cable, and its port of the switch.",
        )
    for link in slow:
        if not {link.machine, link.peer} & set(guilty):
            both = all(len(around[end]) > 1 for end in (link.machine, link.peer))
            where = (
                "both are fast with others, so look at the way between them"
                if both
                else "look at both, as no other neighbour tells which it is"
            )
            yield (
                link.machine,
                f"The link from {link.machine} to {link.peer} is slow: {name} is {_shown(link)}, and usually "
                f"{usual:.4g}; {where}.",
            )


def _usual(name: str, links: Sequence[Link]) -> float:
    """Return the median of the better half, as a slow machine has two slow links, which are most of three."""
    values = sorted(
        (link.value for link in links if link.value is not None),
        reverse=not name.endswith(LESS_IS_BETTER),
    )
    return median(values[: max(1, len(values) // 2)]) if values else 0.0


def _is_slow(link: Link, usual: float) -> bool:
    if link.value is None:
        return True
    if link.name.endswith(LESS_IS_BETTER):
        return link.value > usual * LONGER
    return link.value * SLOWER < usual


def _shown(link: Link) -> str:
    return "not measured" if link.value is None else f"{link.value:.4g}"
