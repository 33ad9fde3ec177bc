# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors, memory and other GPUs that are near a simulated GPU."""

from __future__ import annotations

import os
from collections.abc import Callable

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host

PROCESSORS = os.sysconf("SC_NPROCESSORS_CONF")
WORDS = -(-PROCESSORS // 64)


def bits(words: object) -> int:
    return sum(bin(word).count("1") for word in list(words))  # type: ignore[call-overload]


def test_all_processors_and_the_only_node_are_near(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    gpu = sim_nvml.gpu()
    assert bits(n.nvmlDeviceGetCpuAffinity(gpu, WORDS)) == PROCESSORS
    for scope in (n.NVML_AFFINITY_SCOPE_NODE, n.NVML_AFFINITY_SCOPE_SOCKET):
        assert bits(n.nvmlDeviceGetCpuAffinityWithinScope(gpu, WORDS, scope)) == PROCESSORS
        assert list(n.nvmlDeviceGetMemoryAffinity(gpu, 1, scope)) == [1]
    assert n.nvmlDeviceGetNumaNodeId(gpu) == 0


def test_a_set_without_room_is_refused(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    assert sim_nvml.code(n.nvmlDeviceGetCpuAffinity, sim_nvml.gpu(), 0) == n.NVML_ERROR_INVALID_ARGUMENT


def test_a_scope_that_there_is_not_is_refused(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    gpu = sim_nvml.gpu()
    for ask in (n.nvmlDeviceGetCpuAffinityWithinScope, n.nvmlDeviceGetMemoryAffinity):
        assert sim_nvml.code(ask, gpu, 1, 2) == n.NVML_ERROR_INVALID_ARGUMENT


def test_links_of_a_board_in_a_fabric_lead_to_a_switch(make_host: Callable[..., Host]) -> None:
    make_host("h100-80gb", "h100-80gb")
    gpu = sim_nvml.gpu()
    assert n.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, 17) == n.NVML_NVLINK_DEVICE_TYPE_SWITCH
    remote = n.nvmlDeviceGetNvLinkRemotePciInfo(gpu, 17)
    assert remote.busId not in {n.nvmlDeviceGetPciInfo(sim_nvml.gpu(index)).busId for index in (0, 1)}
    assert sim_nvml.code(n.nvmlDeviceGetNvLinkRemotePciInfo, gpu, 18) == n.NVML_ERROR_INVALID_ARGUMENT


def test_links_without_a_fabric_lead_to_the_other_gpus(make_host: Callable[..., Host]) -> None:
    host = make_host("v100-32gb:3")
    addresses = [n.nvmlDeviceGetPciInfo(sim_nvml.gpu(index)).busId for index in range(3)]
    found = {n.nvmlDeviceGetNvLinkRemotePciInfo(sim_nvml.gpu(), link).busId for link in range(6)}
    assert found == set(addresses[1:])
    assert n.nvmlDeviceGetNvLinkRemoteDeviceType(sim_nvml.gpu(), 0) == n.NVML_NVLINK_DEVICE_TYPE_GPU
    host.simgpu("set", "0", "nvlink_down=0")
    assert sim_nvml.code(n.nvmlDeviceGetNvLinkRemotePciInfo, sim_nvml.gpu(), 0) == n.NVML_ERROR_NOT_SUPPORTED


@pytest.mark.parametrize("model", ["t4", "v100-32gb"])
def test_a_gpu_alone_has_no_other_end(model: str, make_host: Callable[..., Host]) -> None:
    make_host(model)
    assert sim_nvml.code(n.nvmlDeviceGetNvLinkRemotePciInfo, sim_nvml.gpu(), 0) == n.NVML_ERROR_NOT_SUPPORTED
