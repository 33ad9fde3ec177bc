"""No plan is better than the planner's: compared with brute force on every geometry of the simulator."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from mig_situations import compare
from simulated_machine import Machine

from lab.mig_oracle import Oracle

SAMPLES = 150
# Layouts with places and multisets of profiles, as published or counted on published tables.
COUNTS = {"a30": (76, 20), "a100-80gb": (2319, 128), "h100-80gb": (2319, 128), "rtx-pro-6000": (717, 115)}
ALIKE = {
    "a100-40gb": "a100-80gb",
    "h100-94gb": "h100-80gb",
    "h100-96gb": "h100-80gb",
    "h200-141gb": "h100-80gb",
    "b200-180gb": "h100-80gb",
}


@pytest.mark.parametrize("model", COUNTS)
def test_no_plan_is_better(make_machine: Callable[..., Machine], model: str) -> None:
    make_machine(model)
    with session.session() as nvml:
        machine = nvml.gpus()[0]
    oracle = Oracle.of_profiles(machine.profiles)
    assert (len(oracle.layouts), len(oracle.by_request)) == COUNTS[model]
    chance = random.Random(model)
    layouts = sorted(oracle.layouts, key=sorted)
    requests = sorted(oracle.by_request)
    for _sample in range(SAMPLES):
        current = chance.choice(layouts)
        used = frozenset(place for place in sorted(current) if chance.random() < 0.3)
        compare(machine, oracle, current, used, chance.choice(requests))


def test_other_models_have_one_of_these_geometries(make_machine: Callable[..., Machine]) -> None:
    make_machine(*ALIKE, *ALIKE.values())
    with session.session() as nvml:
        geometries = [Oracle.of_profiles(gpu.profiles).kinds for gpu in nvml.gpus()]
    assert geometries[: len(ALIKE)] == geometries[len(ALIKE) :]
