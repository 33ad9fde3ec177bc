# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache of libraries as it was before glibc 2.32, which is the only one that Mesos 1.11.0 can read.

It wants the old header in front, and the file to end with the names (src/linux/ldcache.cpp, glibc
sysdeps/generic/dl-cache.h). Since 2.32 ldconfig writes the new header only, since 2.33 an extension behind
the names.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

OLD_HEADER, OLD_ENTRY = 16, 12  # bytes
NEW_HEADER, NEW_ENTRY = 48, 24
EXTENSION = 32  # offset in the new header of where the extension is


def write(path: Path) -> None:
    """Write one for the libraries of this machine."""
    subprocess.run(["/sbin/ldconfig", "-X", "-c", "compat", "-C", path], check=True)
    path.write_bytes(shorten(path.read_bytes()))


def shorten(data: bytes) -> bytes:
    """Cut what is behind the names off a cache with both headers.

    :raises ValueError: it lacks one of them
    """
    if not data.startswith(b"ld.so-1.7.0"):
        raise ValueError("the cache has no old header")
    start = OLD_HEADER + OLD_ENTRY * struct.unpack_from("<I", data, 12)[0]
    start = (start + 7) // 8 * 8
    if not data.startswith(b"glibc-ld.so.cache1.1", start):
        raise ValueError("the cache has no new header")
    libraries, names = struct.unpack_from("<II", data, start + 20)
    found = bytearray(data[: start + NEW_HEADER + NEW_ENTRY * libraries + names])
    struct.pack_into("<I", found, start + EXTENSION, 0)
    return bytes(found)
