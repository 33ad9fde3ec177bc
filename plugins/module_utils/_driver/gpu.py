# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements of a GPU on its driver, by the PCI device id, which needs no driver.

Sources of the tables:

- architectures: the PCI ID Repository (https://pci-ids.ucw.cz, vendor 10de), which names the chip of every
  device id;
- minimum versions: "NVIDIA Multi-Instance GPU User Guide" R620, "Supported GPUs";
- the last branch for Maxwell, Pascal and Volta: release notes of NVIDIA's Linux driver 580;
- open kernel modules: "NVIDIA Transitions Fully Towards Open-Source GPU Kernel Modules" (NVIDIA technical
  blog, 2024): Grace and Blackwell need them, what is older than Turing cannot have them, and they are
  NVIDIA's choice from branch 560 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .version import DriverError, below, numbers

NVIDIA = 0x10DE
DISPLAY = 0x03  # base class of GPUs, with a monitor (0300) or without (0302)
BRIDGE_OTHER = 0x0680  # class of NVSwitches

ARCHITECTURES = (
    (0x1340, 0x15EF, "Maxwell"),
    (0x15F0, 0x15FF, "Pascal"),
    (0x1600, 0x16FF, "Maxwell"),
    (0x1700, 0x173F, "Pascal"),
    (0x1740, 0x17FF, "Maxwell"),
    (0x1B00, 0x1D7F, "Pascal"),
    (0x1D80, 0x1DFF, "Volta"),
    (0x1E00, 0x1FFF, "Turing"),
    (0x2080, 0x20FF, "Ampere"),
    (0x2180, 0x21FF, "Turing"),
    (0x2200, 0x22B9, "Ampere"),
    (0x22BA, 0x22BA, "Ada Lovelace"),
    (0x2300, 0x233F, "Hopper"),
    (0x2340, 0x234F, "Grace Hopper"),
    (0x2400, 0x25FF, "Ampere"),
    (0x2680, 0x28FF, "Ada Lovelace"),
    (0x2900, 0x2FFF, "Blackwell"),
    (0x3180, 0x31FF, "Blackwell"),
)
OLDEST = ARCHITECTURES[0][0]
UNKNOWN = "an architecture newer than this collection"
PROPRIETARY_ONLY = ("Maxwell", "Pascal", "Volta")
OPEN_ONLY = ("Grace Hopper", "Blackwell")
LAST_BRANCH_OF_PROPRIETARY_ONLY = "580"
OPEN_FROM_BRANCH = 560

MINIMUM = {
    0x20B0: ("A100", "450.80.02"),
    0x20B1: ("A100", "450.80.02"),
    0x20B2: ("A100", "450.80.02"),
    0x20B5: ("A100", "450.80.02"),
    0x20F1: ("A100", "450.80.02"),
    0x20B7: ("A30", "460.73.01"),
    0x2321: ("H100", "525.85.12"),
    0x2330: ("H100", "525.85.12"),
    0x2331: ("H100", "525.85.12"),
    0x2329: ("H20", "535.161.07"),
    0x2335: ("H200", "550.90.07"),
    0x233B: ("H200", "550.90.07"),
    0x2901: ("B200", "570.133.20"),
    0x2941: ("GB200", "570.133.20"),
    0x3182: ("B300", "580.82.07"),
    0x2BB1: ("RTX PRO 6000", "575.51.03"),
    0x2BB4: ("RTX PRO 6000", "575.51.03"),
    0x2BB5: ("RTX PRO 6000", "575.51.03"),
    0x2BB3: ("RTX PRO 5000", "575.57.08"),
    0x2C31: ("RTX PRO 4500", "575.64"),
}


@dataclass(frozen=True, order=True)
class PciDevice:
    """A device on the PCI bus; `device_class` is class and subclass, without the programming interface."""

    address: str
    vendor: int
    device: int
    device_class: int

    def __str__(self) -> str:
        """The device as messages name it."""
        model = MINIMUM[self.device][0] if self.device in MINIMUM else f"10de:{self.device:04x}"
        return f"{model} ({architecture(self.device)}) at {self.address}"


def gpus(devices: Iterable[PciDevice]) -> list[PciDevice]:
    """Return the GPUs of NVIDIA."""
    return [one for one in devices if one.vendor == NVIDIA and one.device_class >> 8 == DISPLAY]


def has_nvswitch(devices: Iterable[PciDevice]) -> bool:
    """Whether a switch between GPUs is on the bus, which a fabric manager must set up.

    The switches of Blackwell systems do not show: they lie behind network adapters.
    """
    return any(one.vendor == NVIDIA and one.device_class == BRIDGE_OTHER for one in devices)


def architecture(device: int) -> str:
    """Return the architecture of a PCI device id of NVIDIA.

    Raises:
        DriverError: the GPU is older than Maxwell, which no supported driver manages.
    """
    if device < OLDEST:
        raise DriverError(
            f"The GPU 10de:{device:04x} is older than Maxwell, and no driver that this role installs"
            " manages it:"
            " take the GPU out, or set nvidia_driver_source to preinstalled and install branch 470 or older"
            " yourself."
        )
    return next((name for first, last, name in ARCHITECTURES if first <= device <= last), UNKNOWN)


def kernel_modules(requested: str, devices: Iterable[PciDevice], branch: str) -> str:
    """Return which kernel modules a machine gets, `open` or `proprietary`.

    Args:
        requested: `auto`, `open` or `proprietary`.
        devices: the GPUs of the machine; none if they are not fitted yet.
        branch: the driver's branch, such as `570`; empty while it is not known.

    Raises:
        DriverError: what is requested does not work with a GPU, or no choice works with all of them.
    """
    found = list(devices)
    only_open = [one for one in found if architecture(one.device) in OPEN_ONLY]
    only_proprietary = [one for one in found if architecture(one.device) in PROPRIETARY_ONLY]
    if only_open and only_proprietary:
        raise DriverError(
            f"No NVIDIA driver manages both {only_open[0]}, which needs the open kernel modules, and"
            f" {only_proprietary[0]}, which needs the proprietary ones: take one of them out of this machine."
        )
    if requested == "open" and only_proprietary:
        raise DriverError(
            f"The open kernel modules do not manage {only_proprietary[0]}: set nvidia_driver_kernel_modules"
            " to"
            " proprietary or auto."
        )
    if requested == "proprietary" and only_open:
        raise DriverError(
            f"The proprietary kernel modules do not manage {only_open[0]}: set nvidia_driver_kernel_modules"
            " to"
            " open or auto."
        )
    if requested != "auto":
        return requested
    if only_open or only_proprietary:
        return "open" if only_open else "proprietary"
    return "open" if branch and int(branch) >= OPEN_FROM_BRANCH else "proprietary"


def check_version(wanted: str, devices: Iterable[PciDevice]) -> None:
    """Refuse a version, or a prefix of one, that does not manage every GPU.

    Raises:
        DriverError: names the GPU and the versions that manage it.
    """
    for one in devices:
        if one.device in MINIMUM and below(wanted, MINIMUM[one.device][1]):
            raise DriverError(
                f"The {one} needs version {MINIMUM[one.device][1]} of the NVIDIA driver or a later one, and"
                f" {wanted} is older: set nvidia_driver_version to one that manages it."
            )
        last = LAST_BRANCH_OF_PROPRIETARY_ONLY
        if wanted and architecture(one.device) in PROPRIETARY_ONLY and numbers(wanted)[:1] > numbers(last):
            raise DriverError(
                f"The last branch of the NVIDIA driver that manages the GPU {one} is {last}, and {wanted}"
                " is later:"
                f" set nvidia_driver_version to {last}."
            )
