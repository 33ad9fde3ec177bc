# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Multiple mount protection as the kernel's ext4 does it: who has a device mounted changes a mark on it."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from . import state

# Linux, fs/ext4/ext4.h: struct ext4_super_block, struct mmp_struct
SUPERBLOCK, BLOCK_SIZE = 1024, 4096
INCOMPATIBLE, MMP_BLOCK = 0x60, 0x168
FEATURE = 0x100
CLEAN = 0xFF4D4D50
EVERY = 1  # second; mke2fs(8), mmp_update_interval
LOOKS = 10  # in that time, whether it is still mounted
OPTIONS = ("-O", "mmp,^metadata_csum", "-E", f"mmp_update_interval={EVERY}")


def number(device: str, offset: int, kind: str) -> int:
    with Path(device).open("rb") as file:
        file.seek(SUPERBLOCK + offset)
        found: int = struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]
        return found


def protected(device: str) -> bool:
    return bool(number(device, INCOMPATIBLE, "I") & FEATURE)


@contextlib.contextmanager
def set_aside(device: str) -> Iterator[None]:
    """Let programs write that would wait to see whether somebody else does."""
    features = number(device, INCOMPATIBLE, "I")
    write(device, SUPERBLOCK + INCOMPATIBLE, struct.pack("<I", features & ~FEATURE))
    try:
        yield
    finally:
        write(device, SUPERBLOCK + INCOMPATIBLE, struct.pack("<I", features))


def write(device: str, offset: int, data: bytes) -> None:
    with Path(device).open("r+b") as file:
        file.seek(offset)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def mark(device: str, sequence: int) -> None:
    place = number(device, MMP_BLOCK, "Q") * BLOCK_SIZE + 4  # after the magic number
    name = socket.gethostname().encode()
    write(device, place, struct.pack("<IQ64s", sequence, int(time.time()), name))


def is_held(device: str) -> bool:
    """Whether another machine changes the mark; the real program asks, which is of e2fsprogs."""
    return state.run("e2mmpstatus", device).returncode != 0


def hold(device: str, path: str) -> None:
    """Change the mark as long as the device is mounted."""
    count = 0
    while state.mounted().get(path) == device:
        if count % LOOKS == 0:
            mark(device, 1 + count // LOOKS)
        count += 1
        time.sleep(EVERY / LOOKS)
    mark(device, CLEAN)


def start(device: str, path: str) -> None:
    mark(device, 1)
    state.run("systemd-run", "--collect", "/usr/sbin/lustre-fake", "hold", device, path)
