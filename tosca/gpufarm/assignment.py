# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives everyone a machine of his own if that is possible at all. Pure; knows neither machines nor requests.

Sets of takers are integers with one bit for each, so that thousands of machines are a matter of milliseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence


def bits(number: int) -> Iterator[int]:
    """List the members of a set.

    Args:
        number: the set.

    Yields:
        The position of each bit that is set, lowest first.
    """
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def assign(suits: Sequence[int], takers: int) -> dict[int, int]:
    """Match takers with machines, using machines that come early.

    Machines are offered in order, each along an augmenting path of the bipartite graph. The sets of machines
    that can be used together form a matroid, so this greedy choice is exact: as many takers as possible get
    one, and no other choice uses earlier machines.

    Args:
        suits: the set of takers that each machine suits, most welcome machine first.
        takers: their number.

    Returns:
        The machine of each taker that gets one.
    """
    machine_of: dict[int, int] = {}
    taker_of: dict[int, int] = {}
    waiting = (1 << takers) - 1
    hopeful = waiting
    for offered in range(len(suits)):
        if not waiting:
            break
        reached_from: dict[int, int] = {}
        seen = 0
        queue = deque([offered])
        last = None
        while queue:
            machine = queue.popleft()
            fresh = suits[machine] & hopeful & ~seen
            if fresh & waiting:
                last = next(bits(fresh & waiting))
                reached_from[last] = machine
                break
            seen |= fresh
            for taker in bits(fresh):
                reached_from[taker] = machine
                queue.append(machine_of[taker])
        if last is None:
            hopeful &= ~seen  # from there no way leads to anyone who waits, now or later
            continue
        waiting &= ~(1 << last)
        while True:
            machine = reached_from[last]
            before = taker_of.get(machine)
            machine_of[last], taker_of[machine] = machine, last
            if before is None:
                break
            last = before
    return machine_of


def shortage(suits: Sequence[int], machine_of: dict[int, int], taker: int) -> tuple[set[int], set[int]]:
    """Explain why a taker gets no machine, after Hall's theorem.

    Args:
        suits: as for `assign`.
        machine_of: what `assign` returned.
        taker: one who got none.

    Returns:
        Takers of whom all together are suited by too few machines, and these machines.
    """
    taker_of = {machine: other for other, machine in machine_of.items()}
    takers, machines = {taker}, set[int]()
    wanted = 1 << taker
    growing = True
    while growing:
        growing = False
        for machine, suited in enumerate(suits):
            if machine not in machines and suited & wanted:
                machines.add(machine)
                takers.add(taker_of[machine])
                wanted |= 1 << taker_of[machine]
                growing = True
    return takers, machines
