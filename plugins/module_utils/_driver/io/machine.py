# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather facts about GPUs, kernels and Secure Boot from files, without a driver."""

from __future__ import annotations

import re
from pathlib import Path

from ..gpu import PciDevice
from ..version import kernel_order

# EFI specification 2.10, "3.3 Globally Defined Variables"; the second GUID is that of shim, see its
# MokVars.txt.
GLOBAL_GUID = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM_GUID = "605dab50-e046-4300-abb6-3dd810dd8b23"
EFI_ATTRIBUTES = 4  # bytes before the value in a file of efivarfs


def pci_devices(root: Path) -> list[PciDevice]:
    """Return the devices on the PCI bus, by their addresses.

    Raises:
        OSError: a device cannot be read.
    """
    found = []
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor, device, code = (
            int((folder / name).read_text(), 16) for name in ("vendor", "device", "class")
        )
        found.append(PciDevice(folder.name, vendor, device, code >> 8))
    return found


def installed_kernels(root: Path) -> list[str]:
    """Return the releases of the kernels that can be booted and have modules, from old to new."""
    images = ((root / "boot").glob("vmlinuz-*"), (root / "lib/modules").glob("*/vmlinuz"))
    releases = {path.name.partition("-")[2] for path in images[0]} | {path.parent.name for path in images[1]}
    return sorted((one for one in releases if (root / "lib/modules" / one).is_dir()), key=kernel_order)


def secure_boot(root: Path) -> bool:
    """Whether the firmware made the kernel refuse modules that are not signed with a key it knows.

    Raises:
        OSError: the firmware's variables are there and cannot be read.
    """
    variables = root / "sys/firmware/efi/efivars"
    enabled = variables / f"SecureBoot-{GLOBAL_GUID}"
    unchecked = variables / f"MokSBStateRT-{SHIM_GUID}"
    if not enabled.exists() or enabled.read_bytes()[EFI_ATTRIBUTES:] != b"\1":
        return False
    # `mokutil --disable-validation`: shim and kernel stop checking, the firmware goes on.
    return not (unchecked.exists() and unchecked.read_bytes()[EFI_ATTRIBUTES:] == b"\1")


def key_enrolled(root: Path, certificate: str) -> bool:
    """Whether a certificate is one of the machine owner's keys, which the kernel trusts.

    Args:
        certificate: path of the certificate, in the form DER as DKMS writes it.
    """
    path = root / certificate.lstrip("/")
    # A list that is too long for one variable goes on in MokListRT1, MokListRT2...
    lists = sorted((root / "sys/firmware/efi/efivars").glob(f"MokListRT*-{SHIM_GUID}"))
    if not path.exists():
        return False
    der = path.read_bytes()
    return bool(der) and any(der in one.read_bytes() for one in lists)


def loaded_version(root: Path) -> str:
    """Return the version of the driver's module that is loaded, empty when none is."""
    for path, pattern in (
        ("sys/module/nvidia/version", r"(\S+)"),
        ("proc/driver/nvidia/version", r"Kernel Module\b.*?\s(\d[\d.]+)\s"),
    ):
        if (root / path).exists():
            found = re.search(pattern, (root / path).read_text())
            if found:
                return found[1]
    return ""


def nouveau_loaded(root: Path) -> bool:
    """Whether the kernel's own driver for GPUs of NVIDIA is loaded, which keeps NVIDIA's out."""
    return (root / "sys/module/nouveau").exists()
