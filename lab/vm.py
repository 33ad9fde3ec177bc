"""Hosts with a kernel of their own: QEMU without hardware acceleration, for modules and vm.* sysctls.

The disk is made from the same prepared root as an nspawn host's; kernel and initramfs are taken from it too,
so there is no boot loader. Acceleration (KVM) is left out on purpose: a bench must behave the same wherever
it runs, and inside virtual machines KVM is often absent or only partly working.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.hosts import Host
from lab.network import Network
from lab.system import run

DISK_BYTES = 8 << 30
MEMORY_MEBIBYTES = 1024
PROCESSORS = 2
# Size of QEMU's cache of translated code in MiB; by default it grows past 1 GiB.
TRANSLATION_CACHE = 256


def make_disk(host: Host) -> None:
    """Write the host's root to its disk image and set kernel and initramfs beside it."""
    boot = host.root / "boot"
    for pattern, name in (("vmlinuz-*", "vmlinuz"), ("initrd.img-*", "initrd")):
        found = sorted(boot.glob(pattern))
        if not found:
            raise LabError(
                f"host {host.name}: its image has no {pattern} in /boot: remove the image from the cache"
            )
        (host.directory / name).write_bytes(found[-1].read_bytes())
    disk = host.directory / "disk.ext4"
    with disk.open("wb") as stream:
        stream.truncate(DISK_BYTES)  # sparse
    run(
        [
            "mke2fs",
            "-q",
            "-F",
            "-t",
            "ext4",
            "-E",
            "lazy_itable_init=1,lazy_journal_init=1",
            "-d",
            host.root,
            disk,
        ]
    )


def launch(host: Host, network: Network) -> subprocess.Popen[bytes]:
    """Start the virtual machine under the host's supervisor."""
    subnet = network.subnet()
    if subnet is None:
        raise LabError(f"host {host.name}: the network of its bench is gone: run lab up")
    mtu = Path(f"/sys/class/net/{network.link(host.address)}/mtu").read_text().strip()
    gateway = subnet.network_address + 1
    # Addresses as the kernel documents them in nfsroot.rst; systemd-network-generator reads them as well.
    address = f"ip={host.address}::{gateway}:{subnet.netmask}:{host.name}:eth0:off"
    command = [
        "qemu-system-x86_64",
        *("-name", host.machine),
        *("-accel", f"tcg,thread=multi,tb-size={TRANSLATION_CACHE}"),
        *("-machine", "q35"),
        # OpenBLAS takes qemu64's AMD processor for one with 3DNow, which it has not. For one of Intel the
        # kernel hides its memory from programs (PTI, off below), so a boot takes half as long again.
        *("-cpu", "qemu64,vendor=GenuineIntel"),
        *("-smp", str(PROCESSORS)),
        *("-m", str(MEMORY_MEBIBYTES)),
        "-nographic",
        "-nodefaults",
        *("-serial", f"file:{host.log}"),
        *("-kernel", str(host.directory / "vmlinuz")),
        *("-initrd", str(host.directory / "initrd")),
        *("-append", f"root=/dev/vda rw console=ttyS0 net.ifnames=0 nopti {address}"),
        # The disk is thrown away with the host: flushing it to the medium would only cost time.
        *("-drive", f"file={host.directory}/disk.ext4,if=none,id=disk,format=raw,cache=unsafe"),
        *("-device", "virtio-blk-pci,drive=disk"),
        *("-device", "virtio-rng-pci"),
    ]
    for number in range(host.spec.nics):
        link = network.link(host.address, number)
        # Locally administered address (IEEE 802), unique on the bench's bridge like the last octet.
        hardware = f"52:54:00:4c:{0x42 + number:02x}:{int(host.address.rsplit('.', 1)[1]):02x}"
        command += ["-netdev", f"tap,id=net{number},ifname={link},script=no,downscript=no"]
        command += ["-device", f"virtio-net-pci,netdev=net{number},mac={hardware},host_mtu={mtu}"]
    return host.start(command, {"PATH": os.environ["PATH"]})


def answers(host: Host) -> bool:
    """Whether the SSH server of the virtual machine greets."""
    try:
        with socket.create_connection((host.address, 22), timeout=2) as connection:
            connection.settimeout(2)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
