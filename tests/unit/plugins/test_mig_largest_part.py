"""The request that a refusal offers instead: the largest part that fits, found in bounded time."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.fit import Want, fits, largest_part
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor, parse_layout
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu, GpuError
from mig_geometry import MODELS, gpu


def refusal(one: Gpu, request: str | list[dict[str, Any]]) -> str:
    wish = parse_flavor(request) if isinstance(request, str) else parse_layout(request)
    with pytest.raises(GpuError) as caught:
        plan_flavor(one, wish)
    return str(caught.value)


def test_a_layout_of_many_kinds_is_refused_in_bounded_time() -> None:
    halves = [["1c"], ["2c"], ["1c", "1c"], ["1c", "1c", "1c"], ["2c", "1c"], ["3c"]]
    kinds = [("3g.40gb", compute) for compute in halves]
    kinds += [("2g.20gb", compute) for compute in halves[:3]]
    kinds += [("4g.40gb", ["1c", "1c"]), ("4g.40gb", ["4c"]), ("1g.20gb", ["1c"]), ("1g.10gb", ["1c"])]
    kinds += [("1g.10gb", [])]
    layout = [{"profile": name, "count": 7, "compute_instances": compute} for name, compute in kinds]
    assert "would fit" in refusal(gpu(), layout)


@pytest.mark.parametrize(
    ("flavor", "offer"),
    [
        # As many compute slices, and more memory.
        ("3x 1g.10gb, 2x 3g.40gb", "2x 3g.40gb"),
        ("3x 1g.10gb, 1x 3g.40gb, 1x 4g.40gb", "1x 3g.40gb, 1x 4g.40gb"),
        # Among equals the first.
        ("1x 4g.40gb, 1x 3g.40gb, 1x 7g.80gb", "1x 4g.40gb, 1x 3g.40gb"),
        ("1x 7g.80gb, 1x 4g.40gb, 1x 3g.40gb", "1x 7g.80gb"),
    ],
)
def test_the_better_part_is_offered(flavor: str, offer: str) -> None:
    assert f"; '{offer}' would fit." in refusal(gpu(), flavor)


def size(part: tuple[Want, ...]) -> tuple[int, int]:
    return sum(one.profile.slices for one in part), sum(one.profile.placements[0].size for one in part)


def by_brute_force(one: Gpu, wants: list[Want], beside: tuple[Want, ...]) -> tuple[Want, ...]:
    """The same from every part, in the order of what is wanted first."""
    counts = Counter(wants)
    parts = [
        tuple(Counter(dict(zip(counts, some, strict=True))).elements())
        for some in product(*(range(count, -1, -1) for count in counts.values()))
    ]
    return max((part for part in parts if fits(one, (*part, *beside))), key=size, default=())


@pytest.mark.parametrize("model", sorted(MODELS))
def test_it_is_the_largest_of_all_parts(model: str) -> None:
    rng = random.Random(f"parts of {model}")
    one = gpu(model)
    for _ in range(60):
        kinds = [
            Want(profile, (profile.slices,), rng.choice([None, None, profile.placements[0].start]))
            for profile in rng.choices(one.profiles, k=rng.randint(1, 4))
        ]
        wants = [want for want in kinds for _ in range(rng.randint(1, 3))]
        other = rng.choice(one.profiles)
        held = Want(other, (other.slices,), rng.choice(other.placements).start)
        beside = (held,) if rng.random() < 0.5 else ()
        assert largest_part(one, wants, beside) == by_brute_force(one, wants, beside)
