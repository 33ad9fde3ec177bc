# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors and memory of a machine as Slurm counts them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Collection


def counted(threads: Collection[tuple[int, int]]) -> dict[str, int]:
    """Return `sockets`, `cores_per_socket` and `threads_per_core`, whose product is the number of threads.

    Where sockets or cores differ from one another, each thread counts as a socket, as Slurm itself counts
    processors of which it knows only the number (slurm.conf(5), "CPUs").

    Args:
        threads: socket and core of each thread that the kernel uses.
    """
    sockets = {socket for socket, _core in threads}
    cores = set(threads)
    counts = {
        "sockets": len(sockets),
        "cores_per_socket": len(cores) // max(len(sockets), 1),
        "threads_per_core": len(threads) // max(len(cores), 1),
    }
    if counts["sockets"] * counts["cores_per_socket"] * counts["threads_per_core"] == len(threads):
        return counts
    return {"sockets": len(threads), "cores_per_socket": 1, "threads_per_core": 1}


def memory_mib(meminfo: str) -> int:
    """Return the memory in MiB of a text such as /proc/meminfo has (proc(5)).

    Raises:
        ValueError: if the text does not tell it.
    """
    found = re.search(r"^MemTotal:\s+(\d+) kB$", meminfo, re.MULTILINE)
    if not found:
        raise ValueError("there is no line MemTotal")
    return int(found[1]) // 1024
