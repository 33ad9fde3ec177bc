# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which profiles of the GPU at hand are meant by names that belong to a GPU with another amount of memory.

A name such as 1g.10gb says slices and gigabytes, and what a user means is often a fraction: of 80 GB an
eighth, which on a GPU of 141 GB is called 1g.18gb.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from ._gpu import Gpu, GpuError, Profile
from ._mig_fit import Want, fits, units
from ._mig_flavor import Flavor, ProfileName, read_name

# GB by which the memory in a name may be off, as names are rounded: 94 GB are divided into 12, 24 and 47.
_ROUNDING = 1


def equivalents(gpu: Gpu, flavor: Flavor) -> tuple[Flavor, tuple[tuple[str, str], ...]]:
    """Put the profiles of a GPU into a flavor in place of those that have their names on another GPU.

    A profile is equivalent when it has the same compute slices, the same attributes and the same fraction of
    the memory. The fractions of all profiles of a flavor must belong to one amount of memory (to 1 GB, as
    names are rounded), and what is meant must fit on the GPU. A name without memory means the profile with
    the least. Names that the GPU offers are taken as they are when they fit.

    :returns: the flavor for this GPU; pairs of a name that was asked for and the one it means here
    :raises GpuError: when no profiles are equivalent, or more than one choice is
    """
    names = tuple(dict.fromkeys(item.profile for item in flavor.items))
    by_name = {profile.name: profile for profile in gpu.profiles}
    if all(name in by_name for name in names) and _fits(gpu, flavor, by_name):
        return flavor, ()
    choices = [
        dict(zip(names, some))  # noqa: B905 - Python 3.9
        for some in product(*(_candidates(gpu, read_name(name)) for name in names))
    ]
    meant = [
        choice
        for choice in choices
        if len({profile.id for profile in choice.values()}) == len(names)
        and _one_memory(gpu, choice)
        and _fits(gpu, flavor, choice)
    ]
    if len(meant) == 1:
        pairs = tuple((name, profile.name) for name, profile in meant[0].items() if name != profile.name)
        items = tuple(replace(item, profile=meant[0][item.profile].name) for item in flavor.items)
        return replace(flavor, items=items), pairs
    if not meant and all(name in by_name for name in names):
        # As the names say it, it does not fit, and the planner says why.
        return flavor, ()
    offer = ", ".join(profile.name for profile in gpu.profiles) or "no profiles"
    if not meant:
        raise GpuError(
            f"{gpu} has no profiles that are equivalent to '{flavor}', with the same compute slices,"
            f" fraction of the memory and attributes, and fit on it: it offers {offer}."
        )
    readings = "' or '".join(", ".join(profile.name for profile in choice.values()) for choice in meant)
    raise GpuError(
        f"'{flavor}' can mean '{readings}' on {gpu}, as the fraction of the memory does not follow from the"
        f" name: name the profile of this GPU, which offers {offer}."
    )


def _candidates(gpu: Gpu, name: ProfileName) -> list[Profile]:
    alike = [
        profile
        for profile in gpu.profiles
        if (profile.slices, read_name(profile.name).attributes) == (name.slices, name.attributes)
    ]
    if name.memory is None and alike:
        return [min(alike, key=lambda profile: profile.placements[0].size)]
    return alike


def _one_memory(gpu: Gpu, choice: dict[str, Profile]) -> bool:
    """Whether there is an amount of memory of which all names are the fractions of their profiles here."""
    least, most = 0.0, float("inf")
    for name, profile in choice.items():
        memory = read_name(name).memory
        if memory is not None:
            fraction = profile.placements[0].size / units(gpu)
            least = max(least, (memory - _ROUNDING) / fraction)
            most = min(most, (memory + _ROUNDING) / fraction)
    return least <= most


def _fits(gpu: Gpu, flavor: Flavor, choice: dict[str, Profile]) -> bool:
    return fits(
        gpu,
        [
            Want(choice[item.profile], item.compute or (), item.start)
            for item in flavor.items
            for _one in range(item.count)
        ],
    )
