# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute instances within one GPU instance: where they can lie, and which of them can stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from .._nvml.gpu import ComputeInstance, ComputeProfile, Placement, Profile

# MIG user guide, "Compute Instances": the compute instances that a 4g GPU instance offers are 1c, 2c and 4c.
# Needed only where no GPU instance of the profile exists yet, as NVML tells compute profiles of existing ones
# only.
_MISSING_WIDTHS = {4: (3,)}


@dataclass(frozen=True)
class Change:
    """Changes of the compute instances of a GPU instance: those to destroy, widths of those to create."""

    destroy: tuple[ComputeInstance, ...] = ()
    create: tuple[int, ...] = ()


def fits(profile: Profile, widths: tuple[int, ...]) -> bool:
    """Whether compute instances of some widths fit into an empty GPU instance of a profile.

    Exact where NVML has told the compute profiles of it; otherwise they have to share its compute slices.
    """
    if profile.compute_profiles:
        return place(profile.compute_profiles, (), widths) is not None
    lacking = _MISSING_WIDTHS.get(profile.slices, ())
    return sum(widths) <= profile.slices and not any(width in lacking for width in widths)


def place(
    profiles: tuple[ComputeProfile, ...], taken: Iterable[Placement], widths: Iterable[int]
) -> tuple[tuple[ComputeProfile, Placement], ...] | None:
    """Find places for compute instances in a GPU instance.

    Args:
        profiles: the compute profiles that it offers.
        taken: places of compute instances that are there, in compute slices.
        widths: those of the instances to place, in compute slices.

    Returns:
        profile and place of each, or None when they do not all fit.
    """
    order = sorted(widths, reverse=True)
    if not order:
        return ()
    taken = tuple(taken)
    for profile in profiles:
        if profile.slices != order[0]:
            continue
        for spot in profile.placements:
            if any(spot.overlaps(other) for other in taken):
                continue
            rest = place(profiles, (*taken, spot), order[1:])
            if rest is not None:
                return ((profile, spot), *rest)
    return None


def change(
    profile: Profile,
    have: tuple[ComputeInstance, ...],
    used: frozenset[int],
    widths: tuple[int, ...],
) -> Change | None:
    """Plan the compute instances of one GPU instance that stays.

    Args:
        have: those in it now.
        used: the ids of those that programs use, which must stay.
        widths: those it shall have, in compute slices.

    Returns:
        the change that destroys the fewest of them, or None when one that is used is in the way.
    """
    wanted = Counter(widths)
    if Counter(one.slices for one in have) == wanted:
        return Change()
    spare = [one for one in have if one.id not in used]
    for count in range(len(spare) + 1):
        for gone in combinations(spare, count):
            kept = [one for one in have if one not in gone]
            there = Counter(one.slices for one in kept)
            if there - wanted:
                continue
            missing = tuple(sorted((wanted - there).elements(), reverse=True))
            if _completes(profile, kept, missing):
                return Change(tuple(gone), missing)
    return None


def _completes(profile: Profile, kept: list[ComputeInstance], missing: tuple[int, ...]) -> bool:
    if not profile.compute_profiles:
        return sum(missing) + sum(one.slices for one in kept) <= profile.slices
    taken = [Placement(one.start, one.slices) for one in kept]
    return place(profile.compute_profiles, taken, missing) is not None
