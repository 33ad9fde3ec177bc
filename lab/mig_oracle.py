"""Verify plans of partitions by brute force: every layout that a GPU can hold, and the best of them.

It shares nothing with the planner that it verifies. All that it knows of a GPU comes from NVML: for each
profile memory units, legal starts, compute slices and media engines, of which all instances share as many
as the largest profile has.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Place = tuple[int, int]  # profile id, start
Layout = frozenset[Place]
Request = tuple[tuple[int, int], ...]  # profile ids with counts, in the order of the ids


@dataclass(frozen=True)
class Kind:
    """A profile: id, memory units, compute slices, legal starts, media engines by kind."""

    id: int
    units: int
    slices: int
    starts: tuple[int, ...]
    engines: tuple[tuple[str, int], ...]


class Oracle:
    """All layouts of one geometry."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.kinds = {kind.id: kind for kind in kinds}
        # the order in which room counts
        self.by_size = sorted(kinds, key=lambda kind: (-kind.units, -kind.slices, kind.id))
        self._room: dict[Layout, tuple[int, ...]] = {}

    @classmethod
    def of_profiles(cls, profiles: tuple[Any, ...]) -> Oracle:
        """Make one from profiles as the collection's NVML adapter tells them."""
        return cls(
            tuple(
                Kind(
                    one.id,
                    one.placements[0].size,
                    one.slices,
                    tuple(place.start for place in one.placements),
                    one.engines,
                )
                for one in profiles
            )
        )

    @cached_property
    def layouts(self) -> frozenset[Layout]:
        """Every set of places that do not overlap and for which the media engines suffice."""
        places = [(kind.id, start) for kind in self.kinds.values() for start in kind.starts]
        found: set[Layout] = {frozenset()}
        frontier: set[Layout] = {frozenset()}
        while frontier:
            # A GPU that holds a layout holds every part of it, so layouts are grown one instance at a time.
            grown = {layout | {place} for layout in frontier for place in places if place not in layout}
            frontier = {layout for layout in grown if layout not in found and self._holds(layout)}
            found |= frontier
        return frozenset(found)

    def _holds(self, layout: Layout) -> bool:
        taken: set[int] = set()
        engines: Counter[str] = Counter()
        for profile, start in layout:
            kind = self.kinds[profile]
            units = set(range(start, start + kind.units))
            if taken & units:
                return False
            taken |= units
            engines.update(dict(kind.engines))
        return all(count <= self._engines[name] for name, count in engines.items())

    @cached_property
    def _engines(self) -> dict[str, int]:
        largest = self.by_size[0].units
        whole = [dict(kind.engines) for kind in self.kinds.values() if kind.units == largest]
        return {name: max(one[name] for one in whole) for name in whole[0]}

    @cached_property
    def by_request(self) -> dict[Request, tuple[Layout, ...]]:
        """The layouts of each multiset of profiles."""
        found = defaultdict(list)
        for layout in self.layouts:
            found[self.request(layout)].append(layout)
        return {request: tuple(layouts) for request, layouts in found.items()}

    @staticmethod
    def request(layout: Layout) -> Request:
        """The profiles of a layout with their counts."""
        return tuple(sorted(Counter(profile for profile, _start in layout).items()))

    def room(self, layout: Layout) -> tuple[int, ...]:
        """How many more instances of each profile fit beside a layout, each for itself, the largest first."""
        if layout not in self._room:
            self._room[layout] = tuple(self._most(layout, kind) for kind in self.by_size)
        return self._room[layout]

    def _most(self, layout: Layout, kind: Kind) -> int:
        grown = (layout | {(kind.id, start)} for start in kind.starts if (kind.id, start) not in layout)
        return max((1 + self._most(one, kind) for one in grown if one in self.layouts), default=0)

    def best(self, current: Layout, used: Layout, request: Request) -> tuple[int, tuple[int, ...]] | None:
        """The fewest instances that must go for a request, and the most room that such a change can leave.

        Args:
            current: what is on the GPU.
            used: the part of it that must stay.
            request: what is wanted.

        Returns:
            None if nothing will do.
        """
        fitting = [layout for layout in self.by_request.get(request, ()) if used <= layout]
        if not fitting:
            return None
        fewest = min(len(current - layout) for layout in fitting)
        return fewest, max(self.room(layout) for layout in fitting if len(current - layout) == fewest)
