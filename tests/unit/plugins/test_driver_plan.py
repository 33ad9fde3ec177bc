"""From machine and request to the plan; whole plans stand in driver_plans.yaml."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.gpu import PciDevice
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.plan import (
    Machine,
    Request,
    driver_plan,
    header_packages,
    kernels_to_build,
    resolve,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.version import DriverError

GOLDEN = yaml.safe_load(Path(__file__).with_name("driver_plans.yaml").read_text())

H100 = PciDevice("0000:17:00.0", 0x10DE, 0x2330, 0x0302)
SWITCH = PciDevice("0000:c1:00.0", 0x10DE, 0x22A3, 0x0680)
KERNEL = {"Debian": "6.1.0-44-amd64", "Ubuntu": "6.8.0-60-generic"}
BOOKWORM = "535.309.01-1~deb12u1"
TRIXIE = "550.163.01-2"


def machine(distribution: str, version: str, **values: Any) -> Machine:
    kernel = KERNEL.get(distribution, f"5.14.0-503.el{version[0]}.x86_64")
    flavor = {"Debian": "linux-image-amd64", "Ubuntu": "linux-image-generic"}.get(distribution)
    return replace(
        Machine(
            distribution=distribution,
            version=version,
            architecture="x86_64",
            running=kernel,
            kernels=(kernel,),
            with_headers=frozenset([kernel]),
            images=(f"linux-image-{kernel}", flavor) if flavor else (),
            devices=(H100,),
        ),
        **values,
    )


DEBIAN = machine(
    "Debian",
    "12.11",
    offered={"libnvidia-ml1": (BOOKWORM, "535.261.03-1~deb12u1")},
    sources=("http://deb.debian.org/debian/ bookworm main /etc/apt/sources.list:1",),
)
DISTRIBUTION = Request(source="distribution", version="535")
INSTALLED = {
    **dict.fromkeys(("libnvidia-ml1", "libcuda1", "nvidia-smi", "nvidia-kernel-dkms"), BOOKWORM),
    "nvidia-modprobe": "535.161.07-1~deb12u1",
    "nvidia-persistenced": "535.171.04-1~deb12u1",
}

CASES: dict[str, tuple[Machine, Request]] = {
    "debian 12, distribution": (DEBIAN, DISTRIBUTION),
    "debian 13, distribution, open, branch 550": (
        machine("Debian", "13.1", offered={"libnvidia-ml1": (TRIXIE,)}),
        Request(source="distribution", version="550", kernel_modules="open", persistence=False),
    ),
    "debian 12, nvidia, on an NVSwitch system": (
        machine(
            "Debian",
            "12",
            devices=(H100, SWITCH),
            offered={"nvidia-driver-cuda": ("580.82.07-1", "570.133.20-1")},
        ),
        Request(source="nvidia", version="570"),
    ),
    "debian 13, nvidia, from a mirror": (
        machine("Debian", "13", offered={"nvidia-driver-cuda": ("580.82.07-1",)}),
        Request(
            source="nvidia",
            repository_url="https://mirror.example.org/cuda/",
            repository_key_fingerprint="ab cd 12",
        ),
    ),
    "ubuntu 22.04, distribution, on an NVSwitch system": (
        machine(
            "Ubuntu",
            "22.04",
            sources=("http://archive.ubuntu.com/ubuntu/ jammy main /etc/apt/sources.list:1",),
            devices=(H100, SWITCH),
            offered={"libnvidia-compute-550-server": ("550.144.03-0ubuntu0.22.04.1",)},
        ),
        Request(source="distribution", version="550"),
    ),
    "ubuntu 24.04, nvidia": (
        machine("Ubuntu", "24.04", offered={"libnvidia-compute-570": ("570.133.20-0ubuntu1",)}),
        Request(source="nvidia", version="570"),
    ),
    "rocky 8, nvidia, proprietary": (
        machine("Rocky", "8.10", offered={"nvidia-driver-cuda": ("3:570.133.20-1.el8",)}),
        Request(source="nvidia", version="570.133.20", kernel_modules="proprietary"),
    ),
    "alma 9, nvidia, on an NVSwitch system": (
        machine(
            "AlmaLinux", "9.4", devices=(H100, SWITCH), offered={"nvidia-driver-cuda": ("3:580.82.07-1.el9",)}
        ),
        Request(source="nvidia", version="580"),
    ),
    "debian 12, runfile": (DEBIAN, Request(source="runfile", version="570.133.20")),
}


@pytest.mark.parametrize("case", CASES)
def test_whole_plans(case: str) -> None:
    plan = yaml.safe_load(yaml.safe_dump(asdict(driver_plan(*CASES[case])), default_flow_style=False))
    assert plan == GOLDEN[case]


def test_every_golden_plan_is_tested() -> None:
    assert set(GOLDEN) == set(CASES)


def test_what_is_there_is_kept_when_something_newer_is_offered() -> None:
    plan = driver_plan(
        replace(DEBIAN, installed={**INSTALLED}, offered={"libnvidia-ml1": ("535.999",)}), DISTRIBUTION
    )
    assert (plan.change, plan.version, plan.trial) == (False, BOOKWORM, "")
    assert f"Pin: version {BOOKWORM}\n" in plan.files["/etc/apt/preferences.d/gpufarm-nvidia"]


def test_an_upgrade_takes_the_newest_and_is_tried_first() -> None:
    there = replace(DEBIAN, installed={**INSTALLED}, offered={"libnvidia-ml1": (BOOKWORM, "535.310-1")})
    plan = driver_plan(there, replace(DISTRIBUTION, upgrade=True))
    assert (plan.change, plan.version) == (True, "535.310-1")
    assert plan.trial == "nvidia-kernel-dkms=535.310-1"
    assert not driver_plan(
        replace(there, offered={"libnvidia-ml1": (BOOKWORM,)}), replace(DISTRIBUTION, upgrade=True)
    ).change


def test_another_branch_replaces_the_packages_that_have_the_branch_in_their_names() -> None:
    old = {f"{name}-535": "535.1-0ubuntu1" for name in ("libnvidia-compute", "nvidia-utils", "nvidia-dkms")}
    there = machine("Ubuntu", "24.04", installed=old, offered={"libnvidia-compute-570": ("570.1-0ubuntu1",)})
    request = Request(source="nvidia", version="570")
    with pytest.raises(
        DriverError, match=r"Version 535.1 .* is installed, and .* asks for 570: set nvidia_driver_up"
    ):
        driver_plan(there, request)
    plan = driver_plan(there, replace(request, upgrade=True))
    assert (plan.installed_version, plan.version) == ("535.1-0ubuntu1", "570.1-0ubuntu1")
    assert set(plan.replaced) == {"libnvidia-compute-535", "nvidia-utils-535", "nvidia-dkms-535"}


def test_the_other_kind_of_kernel_modules_makes_room() -> None:
    there = replace(DEBIAN, installed={**INSTALLED})
    plan = driver_plan(there, replace(DISTRIBUTION, kernel_modules="open"))
    assert plan.change and plan.replaced == ("nvidia-kernel-dkms",)


def test_all_kernels_that_boot_are_built_for() -> None:
    old, new = "6.1.0-9-amd64", "6.1.0-44-amd64"
    both = replace(DEBIAN, kernels=(old, new), running=new)
    assert kernels_to_build(replace(both, with_headers=frozenset([old, new])), []) == ((old, new), ())
    assert kernels_to_build(both, []) == ((new,), (old,))
    assert kernels_to_build(both, [new]) == ((new,), ())
    for needed in (
        replace(both, running=old),
        replace(both, with_headers=frozenset([old])),
    ):
        with pytest.raises(DriverError, match="no headers of the kernel"):
            kernels_to_build(needed, [])
    with pytest.raises(DriverError, match=r"no headers of the kernel 1.2.3"):
        kernels_to_build(both, [new, "1.2.3"])


def test_headers_follow_the_kernels_to_come() -> None:
    images = ["linux-image-6.1.0-44-amd64", "linux-image-amd64", "linux-image-cloud-amd64"]
    assert header_packages("apt", ["6.1.0-44-amd64"], images) == [
        "linux-headers-6.1.0-44-amd64",
        "linux-headers-amd64",
        "linux-headers-cloud-amd64",
    ]
    assert header_packages("dnf", ["5.14.0"], images) == ["kernel-devel-5.14.0"]


def test_before_the_sources_are_known_the_version_is_open() -> None:
    plan = driver_plan(replace(DEBIAN, offered={}), DISTRIBUTION)
    assert (plan.version, plan.files) == ("", {})
    assert plan.install[0] == "libnvidia-ml1"


def test_resolve() -> None:
    assert resolve(DISTRIBUTION, "", ()) == ""
    assert resolve(replace(DISTRIBUTION, version=""), "", ("1.2-1", "1.10-1")) == "1.10-1"
    with pytest.raises(DriverError, match=r"offer the NVIDIA driver in 550.1, 570.1, and .* asks for 535"):
        resolve(DISTRIBUTION, "", ("550.1", "570.1"))


@pytest.mark.parametrize(
    ("there", "wanted", "words"),
    [
        (
            machine("Fedora", "42"),
            DISTRIBUTION,
            "runs Fedora 42, and the driver can be installed on Debian 12",
        ),
        (machine("Rocky", "9"), DISTRIBUTION, "Enterprise Linux 9 has no packages of the NVIDIA driver"),
        (machine("Rocky", "9"), Request(source="nvidia"), "branch in their names .* such as 570"),
        (
            machine("Ubuntu", "24.04"),
            replace(DISTRIBUTION, version=""),
            "branch in their names on Ubuntu 24.04",
        ),
        (
            replace(DEBIAN, secure_boot=True),
            DISTRIBUTION,
            "Secure Boot is on, .* 'mokutil --import /var/lib/dkms/",
        ),
        (
            replace(DEBIAN, devices=(H100, SWITCH)),
            DISTRIBUTION,
            "fabric manager, .* not among the packages of Debian",
        ),
        (
            replace(DEBIAN, runfile_version="570.1"),
            DISTRIBUTION,
            "Version 570.1 .* from a runfile, .* 'nvidia-uninstall'",
        ),
        (
            replace(DEBIAN, installed=INSTALLED),
            Request(source="runfile", version="570.1"),
            "from packages .libcuda1 535",
        ),
        (DEBIAN, Request(source="runfile", version="570"), "must name it in full, such as 570.133.20"),
        (
            replace(DEBIAN, runfile_version="550.1"),
            Request(source="runfile", version="570.1"),
            "Version 550.1 .* is inst",
        ),
        (
            replace(DEBIAN, architecture="riscv64"),
            Request(source="nvidia"),
            "no packages .* for the processor riscv64",
        ),
        (DEBIAN, replace(DISTRIBUTION, version="470"), "H100 .* needs version 525.85.12"),
    ],
)
def test_what_cannot_work_is_refused(there: Machine, wanted: Request, words: str) -> None:
    with pytest.raises(DriverError, match=words):
        driver_plan(there, wanted)


def test_an_enrolled_key_lets_secure_boot_pass() -> None:
    driver_plan(replace(DEBIAN, secure_boot=True, key_enrolled=True), DISTRIBUTION)
