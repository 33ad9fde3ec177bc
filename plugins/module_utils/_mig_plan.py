# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the way from the partitions of one GPU to those that are wanted.

The plan is exact. It destroys no instance that is in use, then as few others as possible, then replaces as
few compute instances as possible; all of that is decided by search, before anything is touched. What a GPU
can hold is what NVML says about it: profiles, their placements and counts. There is no table of GPU models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from operator import itemgetter

from ._gpu import Gpu, GpuError, GpuInstance, Placement, Profile
from ._mig_flavor import AS_FOUND, DISABLED, Flavor


@dataclass(frozen=True)
class Slot:
    """A partition that is to be made: a profile and its place."""

    profile: Profile
    placement: Placement

    def __str__(self) -> str:
        """The slot as a diff shows it."""
        return f"{self.profile.name} at {self.placement.start}"


@dataclass(frozen=True)
class Plan:
    """What to do with one GPU, in this order.

    `mode`: switch MIG mode on or off (None: leave it), off only after the destruction. `destroy`: instances
    to remove. `refit`: instances to keep whose compute instances give way to one of full width. `create`: new
    ones.
    """

    gpu: Gpu
    mode: bool | None
    destroy: tuple[GpuInstance, ...]
    refit: tuple[GpuInstance, ...]
    create: tuple[Slot, ...]

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.mode is not None or bool(self.destroy or self.refit or self.create)

    @property
    def mig_enabled(self) -> bool:
        """MIG mode after the plan."""
        return self.gpu.mig_enabled if self.mode is None else self.mode

    @property
    def layout(self) -> tuple[tuple[str, int], ...]:
        """(profile name, start) of every partition after the plan, ordered by start."""
        kept = [one for one in self.gpu.instances if one not in self.destroy]
        places = [(one.profile.name, one.placement.start) for one in kept]
        places += [(slot.profile.name, slot.placement.start) for slot in self.create]
        return tuple(sorted(places, key=itemgetter(1)))


def plan_flavor(gpu: Gpu, flavor: Flavor) -> Plan:
    """Plan one GPU for a flavor.

    :raises GpuError: when it cannot be had, in one sentence: what stands against it and what to do
    """
    if flavor.kind == AS_FOUND:
        return Plan(gpu, None, (), (), ())
    if flavor.kind == DISABLED:
        return _plan_disabled(gpu)
    _check_mode(gpu, str(flavor))
    wanted = _wanted(gpu, flavor)
    _check_fits_empty(gpu, flavor, wanted)
    plan = _search(gpu, wanted)
    if plan is None:
        raise GpuError(_refusal_in_use(gpu, flavor, wanted))
    return plan


def plan_layout(gpu: Gpu, layout: Iterable[tuple[str, int]]) -> Plan:
    """Plan one GPU for partitions at given places, as a machine does that has just started.

    :arg layout: (profile name, start) of each partition
    :raises GpuError: when it cannot be had
    """
    _check_mode(gpu, "the stored layout")
    slots = {_slot(gpu, name, start) for name, start in layout}
    for first, second in combinations(slots, 2):
        if first.placement.overlaps(second.placement):
            raise GpuError(f"The stored layout of {gpu} puts {first} and {second} on top of each other.")
    kept = [one for one in gpu.instances if Slot(one.profile, one.placement) in slots]
    _check_unused(
        gpu, [one for one in gpu.instances if one not in kept], "the stored layout has no place for them"
    )
    return _plan_keeping(gpu, kept, slots - {Slot(one.profile, one.placement) for one in kept})


def _check_mode(gpu: Gpu, wish: str) -> None:
    """Refuse a layout for a GPU that has no MIG mode, or whose programs keep it from being switched on."""
    if not gpu.mig_capable:
        raise GpuError(
            f"{gpu} cannot be partitioned, so '{wish}' cannot be had: leave it out of the selected GPUs."
        )
    if not gpu.mig_enabled and gpu.processes:
        raise GpuError(
            f"MIG mode of {gpu} cannot be switched on while it is used by"
            f" {_listing(gpu.processes)}: stop that and run again."
        )


def _plan_disabled(gpu: Gpu) -> Plan:
    if not gpu.mig_enabled and not gpu.mig_pending:
        return Plan(gpu, None, (), (), ())
    _check_unused(gpu, gpu.instances, "MIG mode is to be switched off")
    return Plan(gpu, False, gpu.instances, (), ())


def _check_unused(gpu: Gpu, instances: Iterable[GpuInstance], why: str) -> None:
    used = [one for one in instances if gpu.users(one)]
    if used:
        raise GpuError(f"{_listing_used(gpu, used)} and {why}: stop what uses it and run again.")


def _wanted(gpu: Gpu, flavor: Flavor) -> Counter[Profile]:
    """Return the profiles of a flavor, as the GPU knows them."""
    by_name = {profile.name: profile for profile in gpu.profiles}
    missing = [name for name, _count in flavor.profiles if name not in by_name]
    if missing:
        raise GpuError(
            f"{gpu} has no MIG profile {_listing(missing)}: it offers"
            f" {_listing(f'{profile.name} (at most {profile.max_count})' for profile in gpu.profiles)}"
            " with the driver that is loaded."
        )
    return Counter({by_name[name]: count for name, count in flavor.profiles})


def _check_fits_empty(gpu: Gpu, flavor: Flavor, wanted: Counter[Profile]) -> None:
    """Refuse what the GPU could not even hold when it was empty."""
    for profile, count in wanted.items():
        if count > profile.max_count:
            raise GpuError(
                f"{gpu} cannot hold '{flavor}': the profile {profile.name} fits on it at most"
                f" {profile.max_count}x."
            )
    if _place(gpu, wanted, ()) is None:
        best = _largest(gpu, wanted, Counter(), ())
        raise GpuError(
            f"{gpu} cannot hold '{flavor}', as its partitions do not fit beside one another:"
            f" '{_words(best)}' would fit."
        )


def _search(gpu: Gpu, wanted: Counter[Profile]) -> Plan | None:
    """Return the plan that keeps the most instances, all used ones among them, or None if there is none."""
    used = {one for one in gpu.instances if gpu.users(one)}
    if any(not one.whole for one in used):
        return None
    spare = [one for one in gpu.instances if one not in used]
    for count in range(len(spare), -1, -1):
        # Among equals, those that need no new compute instance come first.
        choices = sorted(combinations(spare, count), key=lambda some: sum(not one.whole for one in some))
        for choice in choices:
            kept = [one for one in gpu.instances if one in used or one in choice]
            slots = _complete(gpu, wanted, kept)
            if slots is not None:
                return _plan_keeping(gpu, kept, slots)
    return None


def _plan_keeping(gpu: Gpu, kept: list[GpuInstance], slots: Iterable[Slot]) -> Plan:
    destroy = tuple(one for one in gpu.instances if one not in kept)
    refit = tuple(one for one in kept if not one.whole)
    _check_unused(gpu, refit, "its compute instances are to be replaced")
    create = tuple(sorted(slots, key=lambda slot: slot.placement))
    # Mode that is on, but to be off after the next reset, is switched on again too.
    return Plan(gpu, None if gpu.mig_enabled and gpu.mig_pending else True, destroy, refit, create)


def _complete(gpu: Gpu, wanted: Counter[Profile], kept: list[GpuInstance]) -> list[Slot] | None:
    """Return the slots that complete kept instances to the wanted layout, or None if nothing does."""
    have = Counter(one.profile for one in kept)
    if have - wanted:
        return None
    missing = wanted - have
    if len(kept) == len(gpu.instances) and any(
        profile.remaining is not None and count > profile.remaining for profile, count in missing.items()
    ):
        # Nothing is destroyed, so what the driver says about the room that is left holds.
        return None
    return _place(gpu, missing, tuple(Slot(one.profile, one.placement) for one in kept))


def _place(gpu: Gpu, missing: Counter[Profile], taken: tuple[Slot, ...]) -> list[Slot] | None:
    """Find places for profiles beside slots that are taken, or return None when there are none."""
    if missing and not _engines_suffice(gpu, missing + Counter(slot.profile for slot in taken)):
        return None
    # Large ones first: they have the fewest places, so a dead end shows early.
    order = sorted(missing.elements(), key=lambda profile: (-profile.placements[0].size, profile.id))
    return _place_each(order, taken, -1)


def _place_each(order: list[Profile], taken: tuple[Slot, ...], last_start: int) -> list[Slot] | None:
    if not order:
        return []
    for placement in order[0].placements:
        # Partitions of one profile are alike, so only one order of their places is tried.
        if placement.start <= last_start or any(placement.overlaps(slot.placement) for slot in taken):
            continue
        slot = Slot(order[0], placement)
        same_next = order[1:2] == order[:1]
        rest = _place_each(order[1:], (*taken, slot), placement.start if same_next else -1)
        if rest is not None:
            return [slot, *rest]
    return None


def _engines_suffice(gpu: Gpu, layout: Counter[Profile]) -> bool:
    """Whether the media engines of a GPU suffice for a layout.

    NVML gives the engines of one instance of each profile, and no total. That all instances share as many as
    the best profile has is inferred from the counts that NVML gives; a kind of engine for which those counts
    say otherwise on the GPU at hand is left out.
    """
    for kind in {kind for profile in gpu.profiles for kind, _count in profile.engines}:
        need = {profile: dict(profile.engines).get(kind, 0) for profile in gpu.profiles}
        total = max(need.values())
        explained = all(need[profile] * profile.max_count <= total for profile in gpu.profiles)
        if explained and sum(need[profile] * count for profile, count in layout.items()) > total:
            return False
    return True


def _refusal_in_use(gpu: Gpu, flavor: Flavor, wanted: Counter[Profile]) -> str:
    """Say why a layout that an empty GPU could hold cannot be had beside what is used."""
    used = [one for one in gpu.instances if gpu.users(one)]
    if not used:
        return (
            f"The driver of {gpu} reports less room than '{flavor}' needs: look for programs that hold the"
            " GPU without using a partition (monitoring, profilers), stop them and run again."
        )
    narrow = [one for one in used if not one.whole]
    if narrow:
        return (
            f"{_listing_used(gpu, narrow)}, but not divided as '{flavor}' wants it: stop what uses it and run"
            " again."
        )
    taken = tuple(Slot(one.profile, one.placement) for one in used)
    have = Counter(slot.profile for slot in taken)
    best = have + _largest(gpu, wanted - have, have, taken)
    return (
        f"{_listing_used(gpu, used)}, and '{flavor}' does not fit beside it: stop what uses it,"
        f" or ask for '{_words(best)}', which keeps it."
    )


def _largest(
    gpu: Gpu, wanted: Counter[Profile], have: Counter[Profile], taken: tuple[Slot, ...]
) -> Counter[Profile]:
    """Return the part of a wish that fits beside what is taken and has the most compute slices."""
    room = [range(min(count, profile.max_count - have[profile]), -1, -1) for profile, count in wanted.items()]
    parts = (+Counter(dict(zip(wanted, counts))) for counts in product(*room))  # noqa: B905 - Python 3.9
    by_slices = sorted(parts, key=lambda part: -sum(one.slices * count for one, count in part.items()))
    return next(part for part in by_slices if _place(gpu, part, taken) is not None)


def _slot(gpu: Gpu, name: str, start: int) -> Slot:
    for profile, placement in _places(gpu):
        if (profile.name, placement.start) == (name, start):
            return Slot(profile, placement)
    raise GpuError(
        f"{gpu} has no MIG profile {name} that may start at {start}: the driver or the GPU has changed since"
        " the layout was stored, so apply the flavor again."
    )


def _places(gpu: Gpu) -> Iterator[tuple[Profile, Placement]]:
    for profile in gpu.profiles:
        for placement in profile.placements:
            yield profile, placement


def _listing_used(gpu: Gpu, instances: Iterable[GpuInstance]) -> str:
    some = list(instances)
    users = [process for one in some for process in gpu.users(one)]
    noun, verb = ("partition", "is") if len(some) == 1 else ("partitions", "are")
    return f"On {gpu} the {noun} {_listing(some)} {verb} used by {_listing(users)}"


def _listing(things: Iterable[object]) -> str:
    return ", ".join(str(thing) for thing in things)


def _words(layout: Counter[Profile]) -> str:
    return ", ".join(f"{count}x {profile.name}" for profile, count in layout.items())
