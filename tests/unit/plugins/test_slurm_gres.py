# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and slices have the types that Slurm gives them, or are refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm import gres
from hypothesis import given
from hypothesis import strategies as st

A100, A30, H100 = "NVIDIA A100-SXM4-80GB", "NVIDIA A30", "NVIDIA H100 80GB HBM3"
RTX = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
PROFILES = {
    A100: ["1g.10gb", "1g.10gb+me", "2g.20gb", "1c.3g.40gb", "3g.40gb", "7g.80gb"],
    A30: ["1g.6gb", "1g.6gb+me", "2g.12gb", "4g.24gb"],
    H100: ["1g.10gb", "1g.20gb", "2g.20gb", "7g.80gb"],
    RTX: ["1g.24gb", "1g.24gb+gfx", "2g.48gb", "4g.96gb"],
    "NVIDIA L4": [],
    "NVIDIA L40S": [],
    "Tesla V100-SXM2-32GB": [],
}


def gpu(model: str, *slices: str, mig: bool | None = None) -> dict[str, Any]:
    return {"model": model, "mig": bool(slices) if mig is None else mig, "slices": list(slices)}


@pytest.mark.parametrize(
    ("model", "profile", "name"),
    [
        (A100, "1g.10gb", "nvidia_a100_1g.10gb"),
        (A30, "1g.6gb", "nvidia_a30_1g.6gb"),
        (H100, "1g.10gb", "nvidia_h100_80gb_hbm3_1g.10gb"),
        (A100, "", "nvidia_a100-sxm4-80gb"),
    ],
)
def test_names_are_those_that_slurm_detects(model: str, profile: str, name: str) -> None:
    assert gres.system_name(model, profile) == name


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (A100, "a100"),
        (A30, "a30"),
        (H100, "h100"),
        ("NVIDIA L40S", "l40s"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "4090"),
        ("Quadro", "quadro"),
    ],
)
def test_a_whole_gpu_has_the_short_name_of_its_model(model: str, kind: str) -> None:
    assert gres.model_type(model) == kind


def test_slices_are_counted_by_profile() -> None:
    assert gres.offered([gpu(A100, *["1g.10gb"] * 2, "3g.40gb"), gpu(A100, "1g.10gb")]) == {
        "1g.10gb": 3,
        "3g.40gb": 1,
    }


def test_whole_gpus_and_slices_of_a_model_are_told_apart() -> None:
    assert gres.offered([gpu(H100, "1g.10gb"), gpu(H100), gpu(A30)]) == {"1g.10gb": 1, "a30": 1, "h100": 1}


def test_profiles_that_are_a_part_of_one_another_are_told_apart() -> None:
    assert gres.offered([gpu(A100, "1g.10gb+me", "1g.10gb")]) == {"1g.10gb": 1, "1g.10gb+me": 1}


def test_a_gpu_in_mig_mode_without_slices_offers_nothing() -> None:
    assert gres.offered([gpu(A100, mig=True), gpu(A30)]) == {"a30": 1}


def test_a_gpu_that_slurm_would_take_for_another_is_refused() -> None:
    with pytest.raises(
        gres.Ambiguous, match=r"cannot tell .* apart, as it detects one as nvidia_a100-sxm4-80gb"
    ):
        gres.offered([gpu(A100, mig=True), gpu(A100)])


@st.composite
def machines(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to eight GPUs, whole, in slices or in MIG mode without slices."""
    found = []
    for model in draw(st.lists(st.sampled_from(sorted(PROFILES)), max_size=8)):
        slices = draw(st.lists(st.sampled_from(PROFILES[model]), max_size=7)) if PROFILES[model] else []
        found.append(gpu(model, *slices, mig=bool(slices) or (draw(st.booleans()) and bool(PROFILES[model]))))
    return found


@given(machines(), st.randoms())
def test_every_gpu_and_slice_is_offered_once_whatever_their_order(
    devices: list[dict[str, Any]], chance: Any
) -> None:
    try:
        found = gres.offered(devices)
    except gres.Ambiguous:
        return
    slices = [profile for one in devices for profile in one["slices"]]
    whole = [one for one in devices if not one["mig"]]
    assert sum(found.values()) == len(slices) + len(whole)
    assert all(found[profile] == slices.count(profile) for profile in slices)
    chance.shuffle(devices)
    assert gres.offered(devices) == found


@given(machines())
def test_only_an_empty_gpu_in_mig_mode_makes_a_machine_ambiguous(devices: list[dict[str, Any]]) -> None:
    gres.offered([one for one in devices if one["slices"] or not one["mig"]])


@given(
    st.lists(st.sampled_from(["nvidia_a100_1g.10gb", "nvidia_a30", "x"])),
    st.lists(st.sampled_from(["1g", "a30"])),
)
def test_no_type_is_given_twice(detected: list[str], configured: list[str]) -> None:
    given_types = [one for one in gres.matched(detected, configured) if one]
    assert all(given_types.count(one) <= configured.count(one) for one in given_types)


def test_the_line_of_a_node_without_gpus_is_empty() -> None:
    assert gres.line({}) == ""
    assert gres.line({"a30": 2, "1g.10gb": 7}) == "gpu:1g.10gb:7,gpu:a30:2"
