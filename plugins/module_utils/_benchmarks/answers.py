# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measurements of file systems and links, read from what programs print. No I/O."""

from __future__ import annotations

import json
import re
from typing import Any


def fio(printed: str, direction: str, number: str) -> float:
    """Return a number of the only job of fio.

    Args:
        printed: by fio, as JSON.
        direction: ``read`` or ``write``.
        number: ``bw_bytes``, in bytes a second, or ``iops``.

    Raises:
        ValueError: fio did not measure it.
    """
    (job,) = _json(printed, "jobs", "fio")
    if job["error"]:
        raise ValueError(f"fio ended with error {job['error']}")
    return float(job[direction][number])


def iperf(printed: str) -> float:
    """Return the bits a second that arrived.

    Args:
        printed: by the client of iperf3, as JSON.

    Raises:
        ValueError: iperf3 did not measure it; its own reason.
    """
    end = _json(printed, "end", "iperf3")
    if "sum_received" not in end:
        raise ValueError(str(json.loads(printed).get("error", "iperf3 says nothing")))
    return float(end["sum_received"]["bits_per_second"])


def ping(printed: str) -> float:
    """Return the shortest round trip in microseconds.

    Args:
        printed: by ping.

    Raises:
        ValueError: no answer has arrived.
    """
    found = re.search(r"^rtt min/avg/max/mdev = ([\d.]+)/", printed, re.MULTILINE)
    if not found:
        raise ValueError("no answer to ping")
    return float(found[1]) * 1000


def _json(printed: str, key: str, program: str) -> Any:
    # fio writes notes before its answer.
    try:
        return json.loads(printed[printed.index("{") :])[key]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the answer of {program} cannot be read") from error
