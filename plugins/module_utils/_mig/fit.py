# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layouts of one GPU: every way to place GPU instances beside one another.

NVML reports the constraints of a GPU: profiles, their placements, counts and media engines. There is
no table of GPU models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .._nvml.gpu import Gpu, GpuInstance, Placement, Profile, compute_name
from .flavor import compute_words


@dataclass(frozen=True)
class Want:
    """A GPU instance that is wanted: profile, compute slices of its compute instances, place if given."""

    profile: Profile
    compute: tuple[int, ...]
    start: int | None = None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Where it may lie."""
        return tuple(one for one in self.profile.placements if self.start in (None, one.start))

    @property
    def kind(self) -> str:
        """The instance as messages name it, without its place."""
        return words(self.profile, self.compute)


@dataclass(frozen=True)
class Slot:
    """A wanted instance and the place that was found for it."""

    profile: Profile
    placement: Placement
    compute: tuple[int, ...]

    def __str__(self) -> str:
        """The slot as a diff shows it."""
        return f"{words(self.profile, self.compute)} at {self.placement.start}"


def words(profile: Profile, compute: tuple[int, ...]) -> str:
    """Return a GPU instance and what it is divided into, if it is, as messages name them."""
    whole = compute == (profile.slices,)
    return profile.name if whole else f"{profile.name} ({compute_words(compute)})"


def of_instance(instance: GpuInstance) -> Want:
    """Return the want that an instance satisfies as it is."""
    return Want(instance.profile, instance.widths, instance.placement.start)


def units(gpu: Gpu) -> int:
    """Return how many memory units a GPU has, as far as its placements reach."""
    return max((one.start + one.size for profile in gpu.profiles for one in profile.placements), default=0)


def layouts(gpu: Gpu, wants: Iterable[Want]) -> Iterator[tuple[Slot, ...]]:
    """Yield every way to place wanted instances on a GPU.

    Instances of one kind are alike, so each set of places for them comes once.
    """
    # Large ones first: they have the fewest places, so a dead end shows early.
    order = sorted(wants, key=_by_size)
    counts = Counter(want.profile for want in order)
    if _suffices(gpu, counts):
        yield from _place(order, 0, 0, -1)


def _by_size(want: Want) -> tuple[int, int, list[int], int]:
    return (
        -want.profile.placements[0].size,
        want.profile.id,
        [-width for width in want.compute],
        -1 if want.start is None else want.start,
    )


def _place(order: list[Want], index: int, occupied: int, last_start: int) -> Iterator[tuple[Slot, ...]]:
    if index == len(order):
        yield ()
        return
    want = order[index]
    same_next = order[index + 1 : index + 2] == [want]
    for placement in want.placements:
        mask = _mask(placement)
        if placement.start <= last_start or mask & occupied:
            continue
        for rest in _place(order, index + 1, occupied | mask, placement.start if same_next else -1):
            yield (Slot(want.profile, placement, want.compute), *rest)


def _mask(placement: Placement) -> int:
    return ((1 << placement.size) - 1) << placement.start


def _occupied(layout: Iterable[Slot]) -> int:
    occupied = 0
    for slot in layout:
        occupied |= _mask(slot.placement)
    return occupied


def fits(gpu: Gpu, wants: Iterable[Want]) -> bool:
    """Whether an empty GPU could hold the wanted instances."""
    return next(layouts(gpu, wants), None) is not None


def lacking_engines(gpu: Gpu, counts: Counter[Profile]) -> str:
    """Return the kind of media engines of which a GPU has too few for some instances, or an empty text.

    NVML gives the engines of one instance of each profile, and no total. That all instances share as many as
    the best profile has is inferred from the counts that NVML gives; a kind of engine for which those counts
    say otherwise on the GPU at hand is left out.
    """
    for kind, total in _engine_budget(gpu).items():
        if sum(_engines(profile, kind) * count for profile, count in counts.items()) > total:
            return kind
    return ""


def _engine_budget(gpu: Gpu) -> dict[str, int]:
    budget = {}
    for kind in sorted({kind for profile in gpu.profiles for kind, _count in profile.engines}):
        total = max(_engines(profile, kind) for profile in gpu.profiles)
        if all(_engines(profile, kind) * profile.max_count <= total for profile in gpu.profiles):
            budget[kind] = total
    return budget


def _engines(profile: Profile, kind: str) -> int:
    return next((count for name, count in profile.engines if name == kind), 0)


class Room:
    """How much room layouts of the same instances leave for others."""

    def __init__(self, gpu: Gpu, wants: Iterable[Want]) -> None:
        have = Counter(want.profile for want in wants)
        budget = _engine_budget(gpu)
        spent = {kind: sum(_engines(one, kind) * count for one, count in have.items()) for kind in budget}
        self._known: dict[int, tuple[int, ...]] = {}
        self._most: list[tuple[Profile, int]] = []
        largest_first = sorted(gpu.profiles, key=lambda one: (-one.placements[0].size, -one.slices, one.id))
        for profile in largest_first:
            limits = [profile.max_count - have[profile]]
            for kind, total in budget.items():
                if _engines(profile, kind):
                    limits.append((total - spent[kind]) // _engines(profile, kind))
            self._most.append((profile, max(0, min(limits))))

    def left(self, layout: Iterable[Slot]) -> tuple[int, ...]:
        """Return how many more instances of each profile, the largest first, would fit beside a layout.

        Each count is for that profile alone.
        """
        occupied = _occupied(layout)
        if occupied not in self._known:
            self._known[occupied] = tuple(
                min(most, _free_places(profile, occupied)) if most else 0 for profile, most in self._most
            )
        return self._known[occupied]


def _free_places(profile: Profile, occupied: int) -> int:
    """Return how many instances of a profile fit into what is not occupied: intervals, by earliest end."""
    count = 0
    for placement in sorted(profile.placements, key=lambda one: one.start + one.size):
        mask = _mask(placement)
        if not mask & occupied:
            occupied |= mask
            count += 1
    return count


def largest_part(gpu: Gpu, wants: Iterable[Want], beside: tuple[Want, ...] = ()) -> tuple[Want, ...]:
    """Return the part of some wants that fits beside others and has the most compute slices, then memory.

    Among equals, what a user wrote first is what stays. Of all parts that occupy the same memory with the
    same profiles only the best is kept, so kinds of one profile do not multiply.
    """
    counts = Counter(wants)
    each = [want for want, count in counts.items() for _again in range(min(count, want.profile.max_count))]
    have = Counter(want.profile for want in beside)
    start = frozenset(have.items())
    parts: dict[tuple[int, frozenset[tuple[Profile, int]]], tuple[bool, ...]] = {
        (_occupied(layout), start): () for layout in layouts(gpu, beside)
    }
    allowed: dict[frozenset[tuple[Profile, int]], bool] = {}
    for want in each:
        longer = {state: (*taken, False) for state, taken in parts.items()}
        for (occupied, profiles), taken in parts.items():
            more = Counter(dict(profiles))
            more[want.profile] += 1
            key = frozenset(more.items())
            if key not in allowed:
                allowed[key] = _suffices(gpu, more)
            if allowed[key]:
                for mask in map(_mask, want.placements):
                    if not mask & occupied:
                        state = (mask | occupied, key)
                        longer[state] = max(longer.get(state, ()), (*taken, True))
        parts = longer
    found = (
        tuple(want for want, is_taken in zip(each, taken) if is_taken)
        for taken in sorted(parts.values())[::-1]
    )
    return max(found, key=_size, default=())


def _size(part: tuple[Want, ...]) -> tuple[int, int]:
    """Return compute slices and memory units of some instances."""
    return sum(one.profile.slices for one in part), sum(one.profile.placements[0].size for one in part)


def _suffices(gpu: Gpu, counts: Counter[Profile]) -> bool:
    """Whether a GPU has enough of all that instances need beside places."""
    return all(count <= one.max_count for one, count in counts.items()) and not lacking_engines(gpu, counts)


def flavor_words(wants: Iterable[Want]) -> str:
    """Return wanted instances in the form of a flavor, for a message."""
    counts: Counter[str] = Counter()
    for want in wants:
        for width in want.compute:
            counts[compute_name(want.profile, width)] += 1
    return ", ".join(f"{count}x {name}" for name, count in counts.items())
