"""Profiles of another amount of memory: what they mean on the GPU at hand, and when that is not clear."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.equivalent import equivalents
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu, GpuError
from mig_geometry import gpu, profiles

A30, A100_40, A100_80, RTX = "A30-24GB", "A100-40GB", "A100-80GB", "RTX-PRO-6000-BW-96GB"
H200 = "H200-141GB"
ITS_MEMORY = {"5gb": "18gb", "10gb": "35gb", "20gb": "71gb", "40gb": "141gb"}


def machine(model: str) -> Gpu:
    """A GPU; the H200 has the shape of the A100."""
    if model != H200:
        return gpu(model)
    names = {
        one: one.name.replace(memory, ITS_MEMORY[memory])
        for one in profiles(A100_40)
        for memory in ITS_MEMORY
        if f".{memory}" in one.name
    }
    return gpu(H200, profiles=tuple(replace(one, name=name) for one, name in names.items()))


@pytest.mark.parametrize(
    ("model", "asked", "meant", "mapped"),
    [
        (A100_80, "7x 1g.10gb", "7x 1g.10gb", {}),
        (A100_80, "7x 1g", "7x 1g.10gb", {"1g": "1g.10gb"}),
        (A30, "4x 1g", "4x 1g.6gb", {"1g": "1g.6gb"}),
        (RTX, "2x 2g+gfx", "2x 2g.48gb+gfx", {"2g+gfx": "2g.48gb+gfx"}),
        # an eighth of 80 GB, of 94 GB (rounded), of 141 GB
        (A100_40, "7x 1g.10gb", "7x 1g.5gb", {"1g.10gb": "1g.5gb"}),
        (A100_80, "7x 1g.12gb", "7x 1g.10gb", {"1g.12gb": "1g.10gb"}),
        (
            A100_80,
            "1x 3g.71gb, 3x 1g.18gb",
            "1x 3g.40gb, 3x 1g.10gb",
            {"3g.71gb": "3g.40gb", "1g.18gb": "1g.10gb"},
        ),
        (
            A100_80,
            "1x 3g.47gb, 1x 1g.24gb",
            "1x 3g.40gb, 1x 1g.20gb",
            {"3g.47gb": "3g.40gb", "1g.24gb": "1g.20gb"},
        ),
        (A100_80, "1x 1g.5gb+me", "1x 1g.10gb+me", {"1g.5gb+me": "1g.10gb+me"}),
        # a quarter here, although the GPU has profiles of the same name
        (
            A100_40,
            "1x 3g.40gb, 3x 1g.10gb",
            "1x 3g.20gb, 3x 1g.5gb",
            {"3g.40gb": "3g.20gb", "1g.10gb": "1g.5gb"},
        ),
        (A100_40, "3x 1c.3g.40gb", "3x 1c.3g.20gb", {"3g.40gb": "3g.20gb"}),
        # a quarter of 40 GB, as this GPU has no eighths
        (RTX, "2x 1g.10gb", "2x 1g.24gb", {"1g.10gb": "1g.24gb"}),
    ],
)
def test_what_a_name_means(model: str, asked: str, meant: str, mapped: dict[str, str]) -> None:
    here = machine(model)
    flavor, pairs = equivalents(here, parse_flavor(asked))
    assert (flavor, dict(pairs)) == (parse_flavor(meant), mapped)
    assert dict(plan_flavor(here, parse_flavor(asked), allow_equivalents=True).mapped) == mapped


@pytest.mark.parametrize(
    ("model", "asked", "said"),
    [
        (A30, "1x 3g.40gb", "has no profiles that are equivalent to '1x 3g.40gb'"),
        (A30, "1x 3g.40gb", "it offers 1g.6gb, 1g.6gb+me, 2g.12gb, 2g.12gb+me, 4g.24gb"),
        (A100_80, "7x 1g.10gb+gfx", "has no profiles that are equivalent"),
        (A100_80, "8x 1g", "has no profiles that are equivalent"),
        # fractions of no one amount of memory
        (A100_80, "1x 3g.20gb, 1x 2g.35gb", "has no profiles that are equivalent"),
        # half of 80 GB, whereas here four slices have it all
        (A30, "1x 4g.40gb", "has no profiles that are equivalent"),
        # an eighth of 80 GB or a quarter of 40 GB
        (H200, "2x 1g.10gb", "can mean '1g.35gb' or '1g.18gb' on GPU 0"),
        # the names are right, the counts are not
        (A100_80, "4x 3g.40gb", "the profile 3g.40gb fits on it at most 2x"),
    ],
)
def test_what_is_not_clear_is_refused_with_what_exists(model: str, asked: str, said: str) -> None:
    with pytest.raises(GpuError) as caught:
        plan_flavor(machine(model), parse_flavor(asked), allow_equivalents=True)
    assert said in str(caught.value)


def test_names_mean_nothing_else_unless_a_user_allows_it() -> None:
    with pytest.raises(GpuError, match=r"has no MIG profile 1g\.12gb"):
        plan_flavor(gpu(A100_80), parse_flavor("7x 1g.12gb"))
