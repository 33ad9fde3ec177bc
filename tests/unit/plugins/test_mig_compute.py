"""Compute instances within a GPU instance: as many as possible stay, and those in use always do."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from itertools import combinations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.compute import change, fits, place
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    ComputeInstance,
    ComputeProfile,
    Placement,
    Profile,
)
from hypothesis import given, settings
from hypothesis import strategies as st

# Placements in GPU instances of each number of compute slices: starts of each width (MIG user guide, "Compute
# Instances"; the starts are inferred from the counts there).
STARTS = {
    2: {1: (0, 1), 2: (0,)},
    3: {1: (0, 1, 2), 2: (0,), 3: (0,)},
    4: {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)},
    7: {1: (0, 1, 2, 3, 4, 5, 6), 2: (0, 2, 4), 3: (0, 4), 4: (0,), 7: (0,)},
}
Spot = tuple[int, int]  # start, width


def profile(slices: int, told: bool = True) -> Profile:
    """A profile of some compute slices, of which NVML has told the compute profiles or not."""
    compute = tuple(
        ComputeProfile(width, width, tuple(Placement(start, width) for start in starts))
        for width, starts in STARTS[slices].items()
    )
    placements = (Placement(0, slices),)
    return Profile(
        slices, f"{slices}g.10gb", slices, 0, 1, placements, compute_profiles=compute if told else ()
    )


def layouts(slices: int) -> list[frozenset[Spot]]:
    """Every way to divide a GPU instance."""
    spots = [(start, width) for width, starts in STARTS[slices].items() for start in starts]
    found = []
    for count in range(slices + 1):
        for some in combinations(spots, count):
            units = [unit for start, width in some for unit in range(start, start + width)]
            if len(units) == len(set(units)):
                found.append(frozenset(some))
    return found


LAYOUTS = {slices: layouts(slices) for slices in STARTS}


@st.composite
def situations(draw: st.DrawFn) -> tuple[int, frozenset[Spot], frozenset[Spot], tuple[int, ...]]:
    slices = draw(st.sampled_from(sorted(STARTS)))
    current = draw(st.sampled_from(LAYOUTS[slices]))
    used = frozenset(spot for spot in sorted(current) if draw(st.booleans()))
    wanted = sorted((width for _start, width in draw(st.sampled_from(LAYOUTS[slices]))), reverse=True)
    return slices, current, used, tuple(wanted)


@settings(max_examples=300, deadline=None)
@given(situations())
def test_no_change_is_better(
    situation: tuple[int, frozenset[Spot], frozenset[Spot], tuple[int, ...]],
) -> None:
    slices, current, used, wanted = situation
    have = [ComputeInstance(number, spot[1], "", spot[0]) for number, spot in enumerate(sorted(current))]
    busy = frozenset(one.id for one in have if (one.start, one.slices) in used)
    todo = change(profile(slices), tuple(have), busy, wanted)
    fitting = [
        layout
        for layout in LAYOUTS[slices]
        if used <= layout and sorted((width for _start, width in layout), reverse=True) == list(wanted)
    ]
    if not fitting:
        assert todo is None
        return
    assert todo is not None
    assert len(todo.destroy) == min(len(current - layout) for layout in fitting)
    assert not busy & {one.id for one in todo.destroy}
    kept = [one for one in have if one not in todo.destroy]
    assert sorted([*(one.slices for one in kept), *todo.create], reverse=True) == list(wanted)
    taken = [Placement(one.start, one.slices) for one in kept]
    assert place(profile(slices).compute_profiles, taken, todo.create) is not None


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    ("slices", "widths", "fit"),
    [
        (3, (1, 1, 1), True),
        (3, (2, 1), True),
        (3, (2, 2), False),
        (4, (3,), False),
        (7, (3, 2, 1), True),
        (7, (4, 4), False),
        (7, (), True),
    ],
)
def test_what_fits_is_known_before_there_is_a_gpu_instance(
    told: bool, slices: int, widths: tuple[int, ...], fit: bool
) -> None:
    assert fits(profile(slices, told), widths) == fit
