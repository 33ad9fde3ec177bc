# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program all_reduce_perf of NVIDIA's nccl-tests: how it is called, and what it answers. No I/O.

It prints a line for each rank, which is a GPU, a row for each size, and whether all sums were right
(nccl-tests, src/util.cu). Releases differ in the first columns of a row; the last eight are time in
microseconds, bandwidth of the algorithm and of the links in GB/s, and wrong elements, with a buffer of its
own for the result and without.
"""

from __future__ import annotations

import re

PROGRAM = "all_reduce_perf"
# Bytes of the first and the last size; each is twice the one before.
SMALLEST, LARGEST = 8, 1 << 30


def words(folder: str, gpus: int) -> list[str]:
    """Return the words of a measurement.

    Args:
        folder: of the program.
        gpus: how many GPUs take part.
    """
    sizes = [f"--minbytes={SMALLEST}", f"--maxbytes={LARGEST}", "--stepfactor=2"]
    return [f"{folder}/{PROGRAM}", *sizes, "--check=1", f"--ngpus={gpus}"]


def values(printed: str, gpus: int) -> dict[str, float]:
    """Return the shortest time of the smallest size, and the bandwidth of the links with the largest one.

    Args:
        printed: by the program.
        gpus: how many had to take part.

    Raises:
        ValueError: nothing was measured, not by all GPUs, or sums are wrong.
    """
    ranks = len(re.findall(r"^#\s+Rank\s+\d+ ", printed, re.MULTILINE))
    if ranks != gpus:
        raise ValueError(f"{ranks} of {gpus} GPUs took part")
    wrong = re.search(r"^# Out of bounds values\s*: (\d+) (\w+)", printed, re.MULTILINE)
    lines = [line.split() for line in printed.splitlines() if re.match(r"\s*\d", line)]
    # Size, the columns that releases differ in, and the last eight.
    rows = {int(row[0]): row[-8:] for row in lines if row[0].isdigit() and len(row) >= 12}
    if not wrong or not rows:
        raise ValueError("it has measured nothing")
    if wrong[2] != "OK":
        raise ValueError(f"{wrong[1]} sums are wrong")
    first, last = rows[min(rows)], rows[max(rows)]
    told = {
        "all_reduce_us": min(float(first[0]), float(first[4])),
        "all_reduce_gb_s": max(float(last[2]), float(last[6])),
    }
    if not all(told.values()):
        raise ValueError("it has measured nothing")
    return told
