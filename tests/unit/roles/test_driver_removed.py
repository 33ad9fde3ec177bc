"""The removal of the driver takes no more than the driver, and nothing that other roles need."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.session import GPU_PYTHON
from harness.host import Host
from harness.life import run
from harness.run import run_role

DRIVER = [
    "nvidia-graphics-drivers libnvidia-ml1:amd64",
    "nvidia-graphics-drivers libcuda1:amd64",
    "nvidia-graphics-drivers-570-server libnvidia-compute-570-server:amd64",
    "nvidia-open-gpu-kernel-modules nvidia-open-kernel-dkms:amd64",
    "nvidia-open nvidia-open:amd64",
    "nvidia-persistenced nvidia-persistenced:amd64",
    "nvidia-fabricmanager-570 nvidia-fabricmanager-570:amd64",
    "nvidia-modprobe nvidia-modprobe:amd64",
    "nvidia-support nvidia-installer-cleanup:amd64",
    "libnvidia-nscq-570 libnvidia-nscq-570:amd64",
    "libcuda1 libcuda1:amd64",
    "glx-alternatives update-glx:amd64",
]
# Sources of Debian and of NVIDIA.
OTHERS = [
    "nvidia-container-toolkit nvidia-container-toolkit-base:amd64",
    "libnvidia-container libnvidia-container1:amd64",
    "nvidia-cuda-toolkit libcudart12:amd64",
    "nvidia-cudnn nvidia-cudnn:amd64",
    "nvidia-nccl libnccl2:amd64",
    "nvidia-texture-tools libnvtt2:amd64",
    "nvidia-vaapi-driver nvidia-vaapi-driver:amd64",
    "nvidia-openjdk-8-jre nvidia-openjdk-8-jre:amd64",
    "nvidia-docker2 nvidia-docker2:all",
    "nvidia-mig-manager nvidia-mig-manager:amd64",
    "egl-wayland libnvidia-egl-wayland1:amd64",
    "datacenter-gpu-manager-4 datacenter-gpu-manager-4-core:amd64",
]


@pytest.mark.parametrize("source", ["distribution", "nvidia"])
def test_only_the_packages_of_the_driver_are_removed(source: str) -> None:
    one = run_role(
        "nvidia_driver",
        {"nvidia_driver_state": "absent", "nvidia_driver_source": source},
        answers={
            "ansible.builtin.stat": {"stat": {"exists": True}},
            "Remove | List the packages of the driver": {"rc": 0, "stdout": "\n".join([*DRIVER, *OTHERS])},
        },
    )
    assert not one.failed, one.refusal
    [removed] = [call.args["name"] for call in one.calls if call.action == "ansible.builtin.apt"]
    assert removed == [line.split()[1] for line in DRIVER]


@pytest.mark.parametrize("source", ["preinstalled", "distribution"])
def test_the_python_stays_while_programs_of_other_roles_run_with_it(source: str) -> None:
    host = Host()
    for role, state in [
        ("mig", "present"),
        ("nvidia_driver", "present"),
        ("nvidia_driver", "absent"),
    ]:
        one = run(role, host, {f"{role}_state": state, "nvidia_driver_source": source})
        assert not one.failed, one.refusal
    assert GPU_PYTHON in host.files
    run("mig", host, {"mig_state": "absent"})
    run("nvidia_driver", host, {"nvidia_driver_state": "absent", "nvidia_driver_source": source})
    assert GPU_PYTHON not in host.files
