"""Requirements of a machine's GPUs on their driver, by their PCI device ids."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from itertools import pairwise

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.gpu import (
    ARCHITECTURES,
    MINIMUM,
    UNKNOWN,
    PciDevice,
    architecture,
    check_version,
    gpus,
    has_nvswitch,
    kernel_modules,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.version import (
    DriverError,
    below,
    branch,
    matches,
    newest,
    upstream,
)
from hypothesis import given
from hypothesis import strategies as st


def gpu(device: int, address: str = "0000:17:00.0") -> PciDevice:
    return PciDevice(address, 0x10DE, device, 0x0302)


P100, V100, T4, A100, L4 = gpu(0x15F8), gpu(0x1DB6), gpu(0x1EB8), gpu(0x20B5), gpu(0x27B8)
H100, GH200, B200, PRO6000, UNBORN = gpu(0x2330), gpu(0x2342), gpu(0x2901), gpu(0x2BB5), gpu(0x4000)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (0x13F2, "Maxwell"),
        (0x15F8, "Pascal"),
        (0x1725, "Pascal"),
        (0x17FD, "Maxwell"),
        (0x1B38, "Pascal"),
        (0x1DB6, "Volta"),
        (0x1EB8, "Turing"),
        (0x2182, "Turing"),
        (0x20B0, "Ampere"),
        (0x2236, "Ampere"),
        (0x22BA, "Ada Lovelace"),
        (0x2684, "Ada Lovelace"),
        (0x2330, "Hopper"),
        (0x2342, "Grace Hopper"),
        (0x2901, "Blackwell"),
        (0x2BB5, "Blackwell"),
        (0x3182, "Blackwell"),
        (0x4000, UNKNOWN),
    ],
)
def test_architectures_of_the_pci_id_repository(device: int, name: str) -> None:
    assert architecture(device) == name


def test_ranges_do_not_overlap() -> None:
    assert all(first <= last < after for (first, last, _), (after, _, _) in pairwise(ARCHITECTURES))


def test_gpus_older_than_maxwell_are_refused() -> None:
    with pytest.raises(DriverError, match=r"10de:102d is older than Maxwell.*preinstalled"):
        architecture(0x102D)


def test_only_gpus_of_nvidia_count() -> None:
    audio, other, switch = (
        PciDevice("0000:17:00.1", 0x10DE, 0x10F0, 0x0403),
        PciDevice("0000:03:00.0", 0x1A03, 0x2000, 0x0300),
        PciDevice("0000:c1:00.0", 0x10DE, 0x1AF1, 0x0680),
    )
    assert gpus([A100, audio, other, switch]) == [A100]
    assert has_nvswitch([A100, switch])
    assert not has_nvswitch([A100, audio, other])


@pytest.mark.parametrize(
    ("devices", "branch_", "chosen"),
    [
        ([], "535", "proprietary"),
        ([], "570", "open"),
        ([], "", "proprietary"),
        ([A100], "535", "proprietary"),
        ([A100, H100], "570", "open"),
        ([T4, L4], "580", "open"),
        ([V100], "580", "proprietary"),
        ([P100, A100], "580", "proprietary"),
        ([B200], "570", "open"),
        ([GH200], "550", "open"),
        ([UNBORN], "620", "open"),
    ],
)
def test_choice_of_kernel_modules(devices: list[PciDevice], branch_: str, chosen: str) -> None:
    assert kernel_modules("auto", devices, branch_) == chosen


def test_a_choice_that_works_is_kept() -> None:
    assert kernel_modules("open", [A100], "535") == "open"
    assert kernel_modules("proprietary", [A100], "570") == "proprietary"


@pytest.mark.parametrize(
    ("requested", "devices", "words"),
    [
        ("open", [V100], r"open kernel modules do not manage 10de:1db6 \(Volta\).*proprietary or auto"),
        ("proprietary", [B200], r"proprietary kernel modules do not manage B200 \(Blackwell\).*open or auto"),
        ("proprietary", [GH200], "Grace Hopper"),
        ("auto", [V100, B200], "No NVIDIA driver manages both B200 .* and 10de:1db6"),
    ],
)
def test_choices_that_cannot_work_are_refused(requested: str, devices: list[PciDevice], words: str) -> None:
    with pytest.raises(DriverError, match=words):
        kernel_modules(requested, devices, "570")


@pytest.mark.parametrize(
    ("wanted", "device", "words"),
    [
        ("535", gpu(0x2335), r"H200 \(Hopper\) at 0000:17:00.0 needs version 550.90.07"),
        ("570.86.15", B200, "needs version 570.133.20"),
        ("550", PRO6000, "needs version 575.51.03"),
        ("590", V100, "last branch .* 10de:1db6 .* is 580"),
    ],
)
def test_versions_that_do_not_manage_a_gpu_are_refused(wanted: str, device: PciDevice, words: str) -> None:
    with pytest.raises(DriverError, match=words):
        check_version(wanted, [A100, device])


@pytest.mark.parametrize(
    ("wanted", "device"),
    [
        ("570", B200),
        ("570.133.20-1", B200),
        ("550", gpu(0x2335)),
        ("580", V100),
        ("580.95.05", V100),
        ("", B200),
        ("999", UNBORN),
    ],
)
def test_versions_that_may_manage_a_gpu_pass(wanted: str, device: PciDevice) -> None:
    check_version(wanted, [device])


def test_every_minimum_belongs_to_an_architecture() -> None:
    assert {architecture(device) for device in MINIMUM} <= {"Ampere", "Hopper", "Blackwell"}


def test_versions_of_packages() -> None:
    debian, red_hat = "535.309.01-1~deb12u1", "3:570.133.20-1.el9"
    assert (upstream(debian), branch(debian)) == ("535.309.01", "535")
    assert (upstream(red_hat), branch(red_hat), branch("")) == ("570.133.20", "570", "")
    assert matches("535", debian) and matches("535.309", debian) and matches(debian, debian)
    assert matches("", debian) and matches("570.133.20", red_hat)
    assert not matches("53", debian) and not matches("535.30", debian) and not matches("535.309.01-2", debian)
    assert newest(["535.183.01-1", debian, "470.1"]) == debian
    assert newest([]) == ""
    assert not below("", "1") and not below("570", "570.133.20") and below("569", "570.133.20")


@given(st.lists(st.integers(0, 999), min_size=2, max_size=3), st.integers(1, 3))
def test_every_prefix_of_a_version_matches_it_and_is_not_below_it(numbers: list[int], length: int) -> None:
    version = ".".join(map(str, numbers))
    prefix = ".".join(map(str, numbers[:length]))
    assert matches(prefix, version)
    assert not below(prefix, version)
