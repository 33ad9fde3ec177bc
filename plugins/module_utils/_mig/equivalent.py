# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which profiles of the GPU at hand are meant by names that belong to a GPU with another amount of memory.

A name such as 1g.10gb says slices and gigabytes, and what a user means is often a fraction: of 80 GB an
eighth, which on a GPU of 141 GB is called 1g.18gb.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from .._nvml.gpu import Gpu, GpuError, Profile
from .fit import Want, fits, units
from .flavor import Flavor, read_name

# Fractions of the memory that profiles of some compute slices take, by the compute slices of the GPU (MIG
# user guide, "Supported MIG Profiles", the columns of memory; 1g comes with twice the memory too on GPUs of
# 7).
_EIGHTH, _QUARTER, _HALF, _WHOLE = Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1)
_SHAPES: dict[int, dict[int, tuple[Fraction, ...]]] = {
    2: {1: (_HALF,), 2: (_WHOLE,)},
    4: {1: (_QUARTER,), 2: (_HALF,), 4: (_WHOLE,)},
    7: {1: (_EIGHTH, _QUARTER), 2: (_QUARTER,), 3: (_HALF,), 4: (_HALF,), 7: (_WHOLE,)},
}
# Compute slices and GB of the GPUs that names can belong to (the largest profile of each in the same tables).
# The GPU at hand reports its own profiles; this table only explains names that it does not have.
_GPUS = (
    *((2, memory) for memory in (32, 48)),
    *((4, memory) for memory in (24, 96)),
    *((7, memory) for memory in (40, 80, 94, 96, 141, 144, 180, 186, 269, 278)),
)


def equivalents(gpu: Gpu, flavor: Flavor) -> tuple[Flavor, tuple[tuple[str, str], ...]]:
    """Put the profiles of a GPU into a flavor in place of those that have their names on another GPU.

    A profile is equivalent when it has the same compute slices, the same attributes and the same fraction of
    the memory. All names of a flavor must belong to one GPU, and what is meant must fit on the one at hand. A
    name without memory means the profile with the least. Names that the GPU offers are taken as they are when
    they fit.

    Returns:
        the flavor for this GPU; pairs of a name that was asked for and the one it means here.

    Raises:
        GpuError: when no profiles are equivalent, or more than one choice is.
    """
    names = tuple(dict.fromkeys(item.profile for item in flavor.items))
    by_name = {profile.name: profile for profile in gpu.profiles}
    named = all(name in by_name for name in names)
    if named and _fits(gpu, flavor, by_name):
        return flavor, ()
    meant: list[dict[str, Profile]] = []
    for slices, memory in _GPUS:
        choice = _choice(gpu, names, slices, memory)
        if choice is not None and choice not in meant and _fits(gpu, flavor, choice):
            meant.append(choice)
    if len(meant) == 1:
        pairs = tuple((name, profile.name) for name, profile in meant[0].items() if name != profile.name)
        items = tuple(replace(item, profile=meant[0][item.profile].name) for item in flavor.items)
        return replace(flavor, items=items), pairs
    if named and not meant:
        # It does not fit as the names say it, and the planner says why.
        return flavor, ()
    offer = ", ".join(profile.name for profile in gpu.profiles)
    if not meant:
        raise GpuError(
            f"{gpu} has no profiles that are equivalent to '{flavor}', with the same compute slices,"
            f" fraction of the memory and attributes, and that fit on it: it offers {offer}."
        )
    readings = "' or '".join(", ".join(profile.name for profile in choice.values()) for choice in meant)
    raise GpuError(
        f"'{flavor}' can mean '{readings}' on {gpu}, as the fraction of the memory does not follow from the"
        f" name: name the profile of this GPU, which offers {offer}."
    )


def _choice(gpu: Gpu, names: tuple[str, ...], slices: int, memory: int) -> dict[str, Profile] | None:
    """Return what names of profiles of a GPU with some slices and GB mean here, None if one means nothing."""
    choice: dict[str, Profile] = {}
    for name in names:
        profile = next(_meanings(gpu, name, slices, memory), None)
        if profile is None or profile in choice.values():
            return None
        choice[name] = profile
    return choice


def _meanings(gpu: Gpu, name: str, slices: int, memory: int) -> Iterator[Profile]:
    asked = read_name(name)
    for fraction in _SHAPES[slices].get(asked.slices, ()):
        # Names are rounded: of 94 GB an eighth is called 12 and a half 47.
        if asked.memory is not None and abs(asked.memory - fraction * memory) >= 1:
            continue
        for profile in gpu.profiles:
            here = read_name(profile.name)
            size = Fraction(profile.placements[0].size, units(gpu))
            if (here.slices, here.attributes, size) == (asked.slices, asked.attributes, fraction):
                yield profile


def _fits(gpu: Gpu, flavor: Flavor, choice: dict[str, Profile]) -> bool:
    return fits(
        gpu,
        [
            Want(choice[item.profile], item.compute or (), item.start)
            for item in flavor.items
            for _one in range(item.count)
        ],
    )
