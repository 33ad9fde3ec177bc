# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real GPU isolator on simulated GPUs: what the role renders gives the GPUs that were meant, and what it
refuses is what the agent dies of. Root only."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import agent

from lab.mesos.real.framework import Framework, until
from lab.mesos.real.gpus import GPUS, GpuMachine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "unit" / "plugins"))

import mesos_settings as given

# Those of the defaults that need more control groups than two are left out.
ISOLATION = ["filesystem/linux", "docker/runtime", "cgroups/devices", "gpu/nvidia"]
UNIT = Path(__file__).resolve().parents[3] / "roles/mesos_agent/templates/mesos-agent.service.j2"
# Device nodes that Docker gives every container (documentation, "Runtime privilege and Linux capabilities").
OF_DOCKER = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]
# Turn on the MIG mode of one, and tell the modes as nvidia-smi does.
TURN_ON = """
import pynvml
pynvml.nvmlInit()
gpus = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
pynvml.nvmlDeviceSetMigMode(gpus[1], 1)
for number, gpu in enumerate(gpus):
    mode = "Enabled" if pynvml.nvmlDeviceGetMigMode(gpu)[0] else "Disabled"
    print(f"{number}, {mode}, {pynvml.nvmlDeviceGetUUID(gpu)}")
"""
SEEN = [f"{number}, Disabled, GPU-{number}" for number in range(GPUS)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> GpuMachine:
    if os.geteuid():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("control groups and device nodes are root's")
    return GpuMachine(tmp_path_factory.mktemp("gpus") / "machine")


def settings(**changes: Any) -> dict[str, Any]:
    return given.agent(**{"build": "apache", "isolation": ISOLATION, **changes})


def options(**changes: Any) -> tuple[str, dict[str, str]]:
    """Resources and the other options that decide about GPUs, as the role renders them."""
    found = agent.plan(settings(**changes))["options"]
    names = ("isolation", "nvidia_gpu_devices", "image_providers")
    return found["resources"], {f"MESOS_{name.upper()}": found[name] for name in names if name in found}


def gpus_of(resources: list[dict[str, Any]]) -> float:
    return sum(one["scalar"]["value"] for one in resources if one["name"] == "gpus")


@pytest.mark.parametrize("devices", [[], [1], [2, 0], [0, 1, 2, 3]])
def test_the_agent_offers_the_gpus_that_are_listed(machine: GpuMachine, devices: list[int]) -> None:
    isolation = ISOLATION if devices else ISOLATION[:-1]
    name = f"offers{len(devices)}"
    with machine.mesos(name, *options(gpu_devices=devices, isolation=isolation)) as mesos:
        assert gpus_of(mesos.call("GET_AGENTS")["agents"][0]["total_resources"]) == len(devices)


def test_a_task_gets_its_gpus_and_no_others(machine: GpuMachine) -> None:
    with machine.mesos("task", *options(gpu_devices=[0, 1, 3])) as mesos:
        framework = Framework(mesos.port)
        offer = framework.offers()[0]
        group = mesos.environment["MESOS_CGROUPS_ROOT"]
        framework.launch(offer, f"cat /sys/fs/cgroup/devices/{group}/*/devices.list; sleep 1", gpus=2)
        framework.wait("TASK_FINISHED")
        out = next(path for path in mesos.work.rglob("stdout") if "runs/latest" not in str(path))
        until(lambda: "c 195:255" in out.read_text())
        framework.stop()
        allowed = {line for line in out.read_text().splitlines() if line.startswith("c 195:")}
        cards = allowed - {"c 195:255 rwm"}
        assert len(cards) == 2 and cards < {"c 195:0 rwm", "c 195:1 rwm", "c 195:3 rwm"}


def test_an_agent_in_a_container_has_the_rights_that_it_needs(machine: GpuMachine) -> None:
    added = re.findall(r"--cap-add (\w+)", UNIT.read_text())
    assert added == ["SYS_ADMIN", "SYS_PTRACE"]
    request = options(isolation=ISOLATION[:-1])
    with machine.mesos("rights", *request, rights=[*OF_DOCKER, *added]) as mesos:
        framework = Framework(mesos.port)
        framework.launch(framework.offers()[0], "mount -t tmpfs none /mnt")
        framework.wait("TASK_FINISHED")
        framework.stop()


# Settings that the role refuses, and errors of the agent with these settings.
@pytest.mark.parametrize(
    ("name", "changes", "words", "resources", "written", "said"),
    [
        (
            "twice",
            {"gpu_devices": [0, 0]},
            "has a GPU twice",
            "gpus:2",
            {"NVIDIA_GPU_DEVICES": "0,0"},
            "contains duplicates",
        ),
        (
            "unknown",
            {"gpu_devices": [7]},
            "has no GPU 7",
            "gpus:1",
            {"NVIDIA_GPU_DEVICES": "7"},
            "GPU device not found",
        ),
        (
            "number",
            {"resources": {**given.agent()["resources"], "gpus": 2}},
            "list the GPUs in mesos_agent_gpu_devices",
            "gpus:2",
            {},
            "cannot be set without",
        ),
        (
            "list",
            {"flags": {"nvidia_gpu_devices": "0,2"}},
            "set mesos_agent_gpu_devices in its place",
            "mem:64",
            {"NVIDIA_GPU_DEVICES": "0,2"},
            "cannot be set without",
        ),
        (
            "devices",
            {"gpu_devices": [0], "isolation": ["filesystem/linux", "gpu/nvidia"]},
            "isolators cgroups/devices",
            "gpus:1",
            {"NVIDIA_GPU_DEVICES": "0", "ISOLATION": "filesystem/linux,gpu/nvidia"},
            "'cgroups/devices' or 'cgroups/all'",
        ),
        (
            "filesystem",
            {"gpu_devices": [0], "isolation": ["cgroups/devices", "gpu/nvidia"]},
            "isolators filesystem/linux",
            "gpus:1",
            {"NVIDIA_GPU_DEVICES": "0", "ISOLATION": "cgroups/devices,gpu/nvidia"},
            "'filesystem/linux' isolator must be enabled",
        ),
    ],
)
def test_what_the_role_refuses_is_what_the_agent_dies_of(
    machine: GpuMachine,
    name: str,
    changes: dict[str, Any],
    words: str,
    resources: str,
    written: dict[str, str],
    said: str,
) -> None:
    seen = given.machine(glibc="2.31", gpus=SEEN)
    assert words in " ".join(agent.plan(settings(**changes), seen)["problems"])
    variables = {"MESOS_ISOLATION": ",".join(ISOLATION)}
    variables |= {f"MESOS_{option}": value for option, value in written.items()}
    with pytest.raises(RuntimeError, match=said), machine.mesos(name, f"cpus:2;{resources}", variables):
        pass


def test_the_cache_of_a_new_c_library_ends_the_agent(machine: GpuMachine) -> None:
    seen = given.machine(glibc="2.36", gpus=SEEN)
    found = " ".join(agent.plan(settings(gpu_devices=[0]), seen)["problems"])
    assert "whose library cache Apache Mesos 1.11.0 cannot read" in found
    request = options(gpu_devices=[0])
    with (
        pytest.raises(RuntimeError, match=r"ldcache::parse: Invalid format"),
        machine.mesos("cache", *request, old_cache=False),
    ):
        pass


def test_mesos_sells_a_gpu_in_mig_mode_which_the_role_does_not(machine: GpuMachine) -> None:
    seen = machine.run(sys.executable, "-c", TURN_ON).splitlines()
    found = " ".join(agent.plan(settings(gpu_devices=[0, 1]), given.machine(gpus=seen))["problems"])
    assert "GPU 1 of a1 is in MIG mode" in found
    with machine.mesos("mig", *options(gpu_devices=[0, 1])) as mesos:
        assert gpus_of(mesos.call("GET_AGENTS")["agents"][0]["total_resources"]) == 2
