# SPDX-License-Identifier: GPL-3.0-or-later
"""Every simulated model keeps the promises that NVML makes about any GPU."""

from __future__ import annotations

from collections.abc import Callable

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host

from lab.gpu_models import KEYS

WITHOUT_MIG = ["v100-32gb", "t4"]
WITH_MIG = [key for key in KEYS if key not in WITHOUT_MIG]
# by the first letter of a model's key
ARCHITECTURES = {
    "v": n.NVML_DEVICE_ARCH_VOLTA,
    "t": n.NVML_DEVICE_ARCH_TURING,
    "a": n.NVML_DEVICE_ARCH_AMPERE,
    "h": n.NVML_DEVICE_ARCH_HOPPER,
    "b": n.NVML_DEVICE_ARCH_BLACKWELL,
    "r": n.NVML_DEVICE_ARCH_BLACKWELL,
}


def test_these_are_all_models(make_host: Callable[..., Host]) -> None:
    refusal = make_host().simgpu("init", "?", check=False).stderr
    known = refusal.partition("the simulator knows ")[2].strip().rstrip(".").split(", ")
    assert sorted(known) == sorted(WITH_MIG + WITHOUT_MIG)


def test_models_share_a_host_whose_driver_knows_them_all(make_host: Callable[..., Host]) -> None:
    make_host(*WITH_MIG, *WITHOUT_MIG)
    assert n.nvmlSystemGetDriverVersion() == "575.51.03"
    architectures = [n.nvmlDeviceGetArchitecture(sim_nvml.gpu(i)) for i in range(n.nvmlDeviceGetCount())]
    assert architectures == [ARCHITECTURES[key[0]] for key in WITH_MIG + WITHOUT_MIG]


@pytest.mark.parametrize("model", WITH_MIG)
def test_every_profile_fits_as_often_as_it_says(make_host: Callable[..., Host], model: str) -> None:
    make_host(model)
    device = sim_nvml.gpu()
    n.nvmlDeviceSetMigMode(device, 1)
    total = n.nvmlDeviceGetMemoryInfo(device).total
    found = sim_nvml.profiles(device)
    assert len({profile.id for profile in found.values()}) == len(found)
    for name, profile in found.items():
        assert name.startswith(f"{profile.sliceCount}g."), name
        assert profile.memorySizeMB * profile.instanceCount << 20 <= total, name
        made = sim_nvml.create(device, *[profile.id] * (profile.instanceCount + 1))
        assert made == [n.NVML_SUCCESS] * profile.instanceCount + [n.NVML_ERROR_INSUFFICIENT_RESOURCES], name
        starts = [start for _, start, _ in sim_nvml.places(device)]
        assert set(starts) <= {start for start, _ in sim_nvml.placements(device, profile.id)}, name
        for instance in sim_nvml.instances(device):
            n.nvmlGpuInstanceDestroy(instance)


@pytest.mark.parametrize("model", WITH_MIG)
def test_only_ampere_keeps_its_mode_over_a_reboot(make_host: Callable[..., Host], model: str) -> None:
    host = make_host(model)
    n.nvmlDeviceSetMigMode(sim_nvml.gpu(), 1)
    host.control("boot")
    ampere = ARCHITECTURES[model[0]] == n.NVML_DEVICE_ARCH_AMPERE
    assert n.nvmlDeviceGetMigMode(sim_nvml.gpu())[0] == ampere


def test_an_rtx_pro_6000_splits_in_four_by_twelve_units(make_host: Callable[..., Host]) -> None:
    make_host("rtx-pro-6000")
    device = sim_nvml.gpu()
    n.nvmlDeviceSetMigMode(device, 1)
    assert sim_nvml.placements(device, 14) == [(0, 3), (3, 3), (6, 3), (9, 3)]
    assert sim_nvml.create(device, 65, 14) == [n.NVML_SUCCESS, n.NVML_ERROR_INSUFFICIENT_RESOURCES]
    assert sim_nvml.create(device, 67, 67, 67) == [0, 0, 0]  # all media engines are taken: only -me is left
