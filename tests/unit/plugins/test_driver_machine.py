"""Facts gathered from a machine's files, on trees that are laid out as the kernel does."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.gpu import PciDevice
from ansible_collections.gpufarm.cluster.plugins.module_utils._driver.io import machine

CERTIFICATE = b"\x30\x82DER"


def write(root: Path, name: str, content: bytes | str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def efi(name: str, value: bytes) -> tuple[str, bytes]:
    guid = machine.GLOBAL_GUID if name == "SecureBoot" else machine.SHIM_GUID
    return f"sys/firmware/efi/efivars/{name}-{guid}", b"\6\0\0\0" + value


def test_pci_devices(tmp_path: Path) -> None:
    for address, vendor, device, code in (
        ("0000:c1:00.0", "0x10de", "0x1af1", "0x068000"),
        ("0000:17:00.0", "0x10de", "0x2330", "0x030200"),
    ):
        for name, value in (("vendor", vendor), ("device", device), ("class", code)):
            write(tmp_path, f"sys/bus/pci/devices/{address}/{name}", value + "\n")
    assert machine.pci_devices(tmp_path) == [
        PciDevice("0000:17:00.0", 0x10DE, 0x2330, 0x0302),
        PciDevice("0000:c1:00.0", 0x10DE, 0x1AF1, 0x0680),
    ]
    (tmp_path / "sys/bus/pci/devices/0000:17:00.0/class").unlink()
    with pytest.raises(OSError, match="class"):
        machine.pci_devices(tmp_path)


def test_no_pci_bus_is_no_device(tmp_path: Path) -> None:
    assert machine.pci_devices(tmp_path) == []


def test_kernels_that_can_boot_from_old_to_new(tmp_path: Path) -> None:
    for release in ("6.1.0-9-amd64", "6.1.0-44-amd64", "6.12.3+deb13-amd64"):
        write(tmp_path, f"boot/vmlinuz-{release}", "")
        (tmp_path / "lib/modules" / release).mkdir(parents=True)
    write(tmp_path, "lib/modules/5.14.0-503.el9.x86_64/vmlinuz", "")
    write(tmp_path, "boot/vmlinuz-0-rescue-0123456789abcdef", "")
    (tmp_path / "lib/modules/6.1.0-1-amd64").mkdir()
    assert machine.installed_kernels(tmp_path) == [
        "5.14.0-503.el9.x86_64",
        "6.1.0-9-amd64",
        "6.1.0-44-amd64",
        "6.12.3+deb13-amd64",
    ]


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ([], False),
        ([("SecureBoot", b"\0")], False),
        ([("SecureBoot", b"\1")], True),
        ([("SecureBoot", b"\1"), ("MokSBStateRT", b"\1")], False),
        ([("SecureBoot", b"\1"), ("MokSBStateRT", b"\0")], True),
    ],
)
def test_secure_boot(tmp_path: Path, variables: list[tuple[str, bytes]], on: bool) -> None:
    for name, value in variables:
        write(tmp_path, *efi(name, value))
    assert machine.secure_boot(tmp_path) is on


def test_a_key_is_enrolled_when_a_list_of_the_machine_owner_holds_its_certificate(tmp_path: Path) -> None:
    assert not machine.key_enrolled(tmp_path, "/var/lib/dkms/mok.pub")
    write(tmp_path, "var/lib/dkms/mok.pub", CERTIFICATE)
    write(tmp_path, *efi("MokListRT", b"signature list of another key"))
    assert not machine.key_enrolled(tmp_path, "/var/lib/dkms/mok.pub")
    write(tmp_path, *efi("MokListRT1", b"signature list " + CERTIFICATE + b" end"))
    assert machine.key_enrolled(tmp_path, "/var/lib/dkms/mok.pub")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar 23 01:00:00 UTC 2025",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (builder)",
    ],
)
def test_loaded_version(tmp_path: Path, line: str) -> None:
    assert machine.loaded_version(tmp_path) == ""
    write(tmp_path, "proc/driver/nvidia/version", line + "\nGCC version:  gcc 12.2.0\n")
    assert machine.loaded_version(tmp_path) == "570.133.20"
    write(tmp_path, "sys/module/nvidia/version", "580.82.07\n")
    assert machine.loaded_version(tmp_path) == "580.82.07"


def test_nouveau(tmp_path: Path) -> None:
    assert not machine.nouveau_loaded(tmp_path)
    (tmp_path / "sys/module/nouveau").mkdir(parents=True)
    assert machine.nouveau_loaded(tmp_path)
