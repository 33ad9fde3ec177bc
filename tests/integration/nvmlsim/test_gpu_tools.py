# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that show GPUs show the simulated ones: models, memory, slices, and which programs compute."""

from __future__ import annotations

import json
import os
import pwd
import re
from pathlib import Path

import pytest
from machine import Machine

from lab import orchestrators

# The oldest binding of the three, which knows neither versions of structs nor MIG.
OLD_BINDING = """
import json
from py3nvml import py3nvml as nvml
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
print(json.dumps({
    "name": nvml.nvmlDeviceGetName(gpu),
    "memory": nvml.nvmlDeviceGetMemoryInfo(gpu).total >> 20,
    "compute": [[one.pid, one.usedGpuMemory >> 20] for one in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)],
    "graphics": nvml.nvmlDeviceGetGraphicsRunningProcesses(gpu),
    "processors": sum(bin(word).count("1") for word in nvml.nvmlDeviceGetCpuAffinity(gpu, 16)),
}))
"""
# A 3g.40gb, whose UUID is printed, and a 2g.20gb.
PARTITION = """
import pynvml as nvml
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
nvml.nvmlDeviceSetMigMode(gpu, 1)
for profile, slices in ((9, 2), (14, 1)):
    instance = nvml.nvmlDeviceCreateGpuInstance(gpu, profile)
    nvml.nvmlGpuInstanceCreateComputeInstance(instance, slices)
for index in range(2):
    device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
    if nvml.nvmlDeviceGetAttributes(device).computeInstanceSliceCount == 3:
        print(nvml.nvmlDeviceGetUUID(device))
"""
SLICES = """
import json
from nvitop import Device
print(json.dumps([[one.name(), one.memory_total() >> 20, sorted(one.processes())]
                  for gpu in Device.all() for one in gpu.mig_devices()]))
"""


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder with the programs."""
    try:
        return orchestrators.environment("gpu_tools")
    except orchestrators.Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


def start(machine: Machine, *words: str) -> int:
    return int(machine.simgpu("process", "start", *words))


def test_gpustat_shows_gpus_and_who_computes(machine: Machine, tools: Path) -> None:
    machine.simgpu("init", "a100-80gb", "t4")
    pid = start(machine, "--gpu", "0", "--memory", "2000")
    done = machine.run(tools / "gpustat", "--json")
    assert not done.returncode, done.stderr
    first, second = json.loads(done.stdout)["gpus"]
    assert (first["name"], second["name"]) == ("NVIDIA A100-SXM4-80GB", "Tesla T4")
    assert (first["memory.total"], second["memory.total"]) == (81920, 15360)
    assert [(one["pid"], one["gpu_memory_usage"]) for one in first["processes"]] == [(pid, 2000)]
    assert second["processes"] == []


def test_nvitop_shows_gpus_and_who_computes(machine: Machine, tools: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    pid = start(machine, "--gpu", "0", "--memory", "2000")
    done = machine.run(tools / "nvitop", "--once", "--no-unicode", COLUMNS="120")
    assert not done.returncode, done.stderr
    assert "A100-SXM4-80GB" in done.stdout and "80.00GiB" in done.stdout
    user = pwd.getpwuid(os.getuid()).pw_name
    assert re.search(rf"\b0 +{pid} [CG] +{user[:7]}\S* +2000MiB", done.stdout), done.stdout


def test_nvitop_shows_each_slice_with_its_own_programs(machine: Machine, tools: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    made = machine.run(tools / "python", "-c", PARTITION)
    assert not made.returncode, made.stderr
    pid = start(machine, "--slice", made.stdout.strip(), "--memory", "2000")
    done = machine.run(tools / "python", "-c", SLICES)
    assert not done.returncode, done.stderr
    assert sorted(json.loads(done.stdout)) == [
        ["NVIDIA A100-SXM4-80GB MIG 2g.20gb", 19968, []],
        ["NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40192, [pid]],
    ]


def test_an_old_binding_asks_for_lists_without_a_version(machine: Machine, tools: Path) -> None:
    machine.simgpu("init", "v100-32gb")
    pid = start(machine, "--gpu", "0", "--memory", "300")
    done = machine.run(tools / "python", "-c", OLD_BINDING)
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout) == {
        "name": "Tesla V100-SXM2-32GB",
        "memory": 32768,
        "compute": [[pid, 300]],
        "graphics": [],
        "processors": os.sysconf("SC_NPROCESSORS_CONF"),
    }
