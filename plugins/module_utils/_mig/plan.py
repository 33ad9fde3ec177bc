# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the way from the partitions of one GPU to those that are wanted.

The plan is exact: of all ways to place the wanted instances it is the one that

1. destroys no GPU instance and no compute instance that a program uses; if there is none, the request
   is refused,
2. then destroys the fewest GPU instances, and so creates the fewest, as the number of those wanted is given,
3. then destroys the fewest compute instances of GPU instances that stay, then creates the fewest in them,
4. then leaves the most room: of the profile that takes the most memory (then of the one with the most compute
   slices, then with the lowest id) the most further instances can be created afterwards, then of the second,
   and so on, each counted for itself,
5. then uses the lowest places.

All of it is decided by search, before anything is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import attrgetter

from .._nvml.gpu import Gpu, GpuError, GpuInstance, compute_name
from . import compute as mig_compute
from .compute import Change
from .equivalent import equivalents
from .fit import (
    Room,
    Slot,
    Want,
    fits,
    flavor_words,
    lacking_engines,
    largest_part,
    layouts,
    of_instance,
    units,
)
from .flavor import AS_FOUND, DISABLED, Flavor


@dataclass(frozen=True)
class Refit:
    """A GPU instance that stays, and how its compute instances change."""

    instance: GpuInstance
    change: Change

    @property
    def compute(self) -> tuple[int, ...]:
        """Widths of its compute instances afterwards, the widest first."""
        kept = [one.slices for one in self.instance.compute_instances if one not in self.change.destroy]
        return tuple(sorted((*kept, *self.change.create), reverse=True))


@dataclass(frozen=True)
class Plan:
    """Changes of one GPU, in this order.

    `mode`: switch MIG mode on or off (None: leave it), off only after the destruction. `destroy`: instances
    to remove. `refit`: instances that stay with other compute instances. `create`: new ones. `mapped` has
    pairs of a profile name that was asked for and the equivalent one that is meant here.
    """

    gpu: Gpu
    mode: bool | None = None
    destroy: tuple[GpuInstance, ...] = ()
    refit: tuple[Refit, ...] = ()
    create: tuple[Slot, ...] = ()
    mapped: tuple[tuple[str, str], ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.mode is not None or bool(self.destroy or self.refit or self.create)

    @property
    def mig_enabled(self) -> bool:
        """MIG mode after the plan."""
        return self.gpu.mig_enabled if self.mode is None else self.mode

    @property
    def layout(self) -> tuple[Slot, ...]:
        """The partitions after the plan, ordered by place."""
        refitted = {refit.instance.id: refit.compute for refit in self.refit}
        kept = (one for one in self.gpu.instances if one not in self.destroy)
        slots = [Slot(one.profile, one.placement, refitted.get(one.id, one.widths)) for one in kept]
        return tuple(sorted((*slots, *self.create), key=attrgetter("placement")))


def plan_flavor(
    gpu: Gpu, flavor: Flavor, allow_equivalents: bool = False, freed: Collection[int] = ()
) -> Plan:
    """Plan one GPU for a flavor.

    Args:
        allow_equivalents: whether a profile name of a GPU with other memory means the equivalent one of this
            GPU.
        freed: ids of processes that will be stopped if they keep MIG mode from being switched.

    Raises:
        GpuError: when it cannot be had, in one sentence: what stands against it and what to do.
    """
    if flavor.kind == AS_FOUND:
        return Plan(gpu)
    if flavor.kind == DISABLED:
        return _plan_disabled(gpu, freed)
    _check_mode(gpu, flavor, freed)
    mapped: tuple[tuple[str, str], ...] = ()
    if allow_equivalents:
        flavor, mapped = equivalents(gpu, flavor)
    wants = _wants(gpu, flavor)
    _check_fits_empty(gpu, flavor, wants)
    plan = _search(gpu, wants, mapped)
    if plan is None:
        raise GpuError(_refusal_in_use(gpu, flavor, wants))
    return plan


def layout_entries(plan: Plan) -> list[dict[str, object]]:
    """Return the partitions after a plan in the form that `parse_layout` reads, each with its place."""
    return [
        {
            "profile": slot.profile.name,
            "start": slot.placement.start,
            "compute_instances": [compute_name(slot.profile, width) for width in slot.compute],
        }
        for slot in plan.layout
    ]


def _check_mode(gpu: Gpu, request: Flavor, freed: Collection[int]) -> None:
    """Refuse a layout for a GPU that has no MIG mode, or whose programs keep it from being switched on."""
    if not gpu.mig_capable:
        raise GpuError(
            f"{gpu} cannot be partitioned, so '{request}' cannot be had: leave it out of the selected GPUs."
        )
    if not gpu.profiles:
        raise GpuError(
            f"{gpu} offers no MIG profiles, so '{request}' cannot be had: update the driver, which is too old"
            " for it."
        )
    if not gpu.mig_enabled:
        _check_whole_gpu_unused(gpu, "on", freed)


def _check_whole_gpu_unused(gpu: Gpu, mode: str, freed: Collection[int]) -> None:
    users = [one for one in gpu.processes if one.gpu_instance is None and one.pid not in freed]
    if users:
        raise GpuError(
            f"MIG mode of {gpu} cannot be switched {mode} while it is used by {_listing(users)}: stop that"
            " and run again."
        )


def _plan_disabled(gpu: Gpu, freed: Collection[int]) -> Plan:
    if not gpu.mig_enabled and not gpu.mig_pending:
        return Plan(gpu)
    used = [one for one in gpu.instances if gpu.users(one)]
    if used:
        raise GpuError(
            f"{_listing_used(gpu, used)} and MIG mode is to be switched off: stop what uses it and run again."
        )
    _check_whole_gpu_unused(gpu, "off", freed)
    return Plan(gpu, mode=False, destroy=gpu.instances)


def _wants(gpu: Gpu, flavor: Flavor) -> tuple[Want, ...]:
    """Return the instances of a flavor, as the GPU knows their profiles."""
    by_name = {profile.name: profile for profile in gpu.profiles}
    missing = list(dict.fromkeys(item.profile for item in flavor.items if item.profile not in by_name))
    if missing:
        raise GpuError(
            f"{gpu} has no MIG profile {_listing(missing)}: it offers {_offer(gpu)} with the driver that is"
            " loaded."
        )
    wants = []
    for item in flavor.items:
        profile = by_name[item.profile]
        starts = [one.start for one in profile.placements]
        if item.start is not None and item.start not in starts:
            raise GpuError(
                f"{gpu} has no place for {profile.name} at {item.start}: it may start at {_listing(starts)}."
            )
        compute = (profile.slices,) if item.compute is None else item.compute
        if not mig_compute.fits(profile, compute):
            raise GpuError(
                f"{gpu} cannot divide {profile.name} into {_listing(f'{width}c' for width in compute)}: its"
                f" {profile.slices} compute slices offer no such places."
            )
        wants += [Want(profile, compute, item.start)] * item.count
    return tuple(wants)


def _check_fits_empty(gpu: Gpu, flavor: Flavor, wants: tuple[Want, ...]) -> None:
    """Refuse what the GPU could not even hold when it was empty."""
    if fits(gpu, wants):
        return
    counts = Counter(want.profile for want in wants)
    too_many = [profile for profile, count in counts.items() if count > profile.max_count]
    engines = lacking_engines(gpu, counts)
    need = sum(want.profile.placements[0].size for want in wants)
    if too_many:
        why = f"the profile {too_many[0].name} fits on it at most {too_many[0].max_count}x"
    elif engines:
        why = f"its media engines do not suffice for all of it ({engines})"
    elif need > units(gpu):
        why = f"that takes {need} of its {units(gpu)} units of memory"
    else:
        why = f"the places ({_places(wants)}) overlap however they are chosen"
    best = flavor_words(largest_part(gpu, wants))
    raise GpuError(f"{gpu} cannot hold '{flavor}': {why}; '{best}' would fit.")


def _places(wants: Iterable[Want]) -> str:
    return "; ".join(
        f"{want.profile.name} at {_listing(one.start for one in want.placements)}"
        for want in dict.fromkeys(wants)
    )


def _search(gpu: Gpu, wants: tuple[Want, ...], mapped: tuple[tuple[str, str], ...]) -> Plan | None:
    """Return the best plan, or None if every one destroys what is used."""
    situation = _Situation(gpu)
    room = Room(gpu, wants)
    best: list[tuple[Slot, ...]] = []
    lowest: tuple[int, ...] | None = None
    for layout in layouts(gpu, wants):
        cost = situation.cost(layout)
        if cost is None or (lowest is not None and cost > lowest):
            continue
        if cost != lowest:
            best, lowest = [], cost
        best.append(layout)
    if not best:
        return None
    chosen = min(
        best,
        key=lambda layout: ([-count for count in room.left(layout)], [slot.placement for slot in layout]),
    )
    # Mode that is on, but to be off after the next reset, is switched on again too.
    mode = None if gpu.mig_enabled and gpu.mig_pending else True
    return situation.plan(chosen, mode, mapped)


class _Situation:
    """Layout of a GPU, and the cost of changing it."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._at = {(one.profile.id, one.placement): one for one in gpu.instances}
        self._used = {(one.profile.id, one.placement) for one in gpu.instances if gpu.users(one)}
        self._changes: dict[tuple[int, tuple[int, ...]], Change | None] = {}
        self._remaining = {one.id: one.remaining for one in gpu.profiles if one.remaining is not None}

    def cost(self, layout: tuple[Slot, ...]) -> tuple[int, ...] | None:
        """Return what a layout destroys and creates, the worst first, or None when it cannot be had."""
        kept = [slot for slot in layout if (slot.profile.id, slot.placement) in self._at]
        if self._used and not self._used <= {(slot.profile.id, slot.placement) for slot in kept}:
            return None
        destroyed = created = 0
        for slot in kept:
            change = self._change(slot)
            if change is None:
                return None
            destroyed += len(change.destroy)
            created += len(change.create)
        gone = len(self._at) - len(kept)
        if not gone and self._remaining and not self._driver_agrees(layout):
            return None
        return gone, destroyed, created

    def _driver_agrees(self, layout: tuple[Slot, ...]) -> bool:
        """Whether the driver reports room for what is created; it tells the room of the GPU as it is."""
        new = Counter(slot.profile.id for slot in layout if (slot.profile.id, slot.placement) not in self._at)
        return all(count <= self._remaining.get(number, count) for number, count in new.items())

    def _change(self, slot: Slot) -> Change | None:
        instance = self._at[(slot.profile.id, slot.placement)]
        key = (instance.id, slot.compute)
        if key not in self._changes:
            self._changes[key] = mig_compute.change(
                instance.profile,
                instance.compute_instances,
                self._gpu.used_compute_instances(instance),
                slot.compute,
            )
        return self._changes[key]

    def plan(self, layout: tuple[Slot, ...], mode: bool | None, mapped: tuple[tuple[str, str], ...]) -> Plan:
        kept = {(slot.profile.id, slot.placement): slot for slot in layout}
        refit = []
        for place, instance in self._at.items():
            change = self._change(kept[place]) if place in kept else None
            if change is not None and change != Change():
                refit.append(Refit(instance, change))
        return Plan(
            self._gpu,
            mode,
            destroy=tuple(one for place, one in self._at.items() if place not in kept),
            refit=tuple(refit),
            create=tuple(
                sorted(
                    (slot for place, slot in kept.items() if place not in self._at),
                    key=attrgetter("placement"),
                )
            ),
            mapped=mapped,
        )


def _refusal_in_use(gpu: Gpu, flavor: Flavor, wants: tuple[Want, ...]) -> str:
    """Say why a layout that an empty GPU could hold cannot be had beside what is used."""
    used = [one for one in gpu.instances if gpu.users(one)]
    if not used:
        return (
            f"The driver of {gpu} reports less room than '{flavor}' needs: look for programs that hold the"
            " GPU without using a partition (monitoring, profilers), stop them and run again."
        )
    if not wants:
        return f"{_listing_used(gpu, used)}, and no partitions are wanted: stop what uses it and run again."
    beside = tuple(of_instance(one) for one in used)
    divided = tuple(Want(one.profile, (), one.start) for one in beside)
    rest = _without(wants, used)
    if rest is not None and fits(gpu, (*rest, *divided)):
        return (
            f"{_listing_used(gpu, used)}, but not divided as '{flavor}' wants it: stop what uses it and run"
            " again."
        )
    best = (*beside, *largest_part(gpu, rest if rest is not None else _others(wants, used), beside))
    return (
        f"{_listing_used(gpu, used)}, and '{flavor}' does not fit beside it: stop what uses it,"
        f" or ask for '{flavor_words(best)}', which keeps it."
    )


def _without(wants: tuple[Want, ...], used: list[GpuInstance]) -> tuple[Want, ...] | None:
    """Return what is wanted beside used instances, or None when they are not among what is wanted."""
    rest = _others(wants, used)
    return rest if len(rest) + len(used) == len(wants) else None


def _others(wants: tuple[Want, ...], used: list[GpuInstance]) -> tuple[Want, ...]:
    rest = list(wants)
    for instance in used:
        alike = [
            want
            for want in rest
            if want.profile == instance.profile and want.start in (None, instance.placement.start)
        ]
        if alike:
            rest.remove(max(alike, key=lambda want: want.compute == instance.widths))
    return tuple(rest)


def _listing_used(gpu: Gpu, instances: Iterable[GpuInstance]) -> str:
    some = list(instances)
    users = [process for one in some for process in gpu.users(one)]
    noun, verb = ("partition", "is") if len(some) == 1 else ("partitions", "are")
    return f"On {gpu} the {noun} {_listing(some)} {verb} used by {_listing(users)}"


def _offer(gpu: Gpu) -> str:
    return _listing(f"{profile.name} (at most {profile.max_count})" for profile in gpu.profiles)


def _listing(things: Iterable[object]) -> str:
    return ", ".join(str(thing) for thing in things)
