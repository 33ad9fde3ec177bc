# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of perftest, which measure RDMA between two machines: how they are called, and answers. No I/O.

Each of them serves one client and ends, and both ends need the same options. The connection manager of RDMA
(rdma_cm(7)) finds the adapter by the address, for InfiniBand by that of IPoIB.
"""

from __future__ import annotations

import re
import shlex

# Bytes of a message, messages, and seconds.
SMALL, TIMES, SECONDS = 8, 100, 3
_NUMBER = r"\d+(?:\.\d+)?"
RUNS: dict[str, tuple[str, ...]] = {
    "latency": ("ib_write_lat", f"--size={SMALL}", f"--iters={TIMES}"),
    "sent": ("ib_write_bw", f"--duration={SECONDS}", "--report_gbits"),
    # The option --reversed does not go with the connection manager (perftest 25.01).
    "received": ("ib_read_bw", f"--duration={SECONDS}", "--report_gbits"),
}


def words(run: str, port: int) -> list[str]:
    """Return the words of a measurement, which serve; a client gives the address in the end.

    Args:
        run: a key of `RUNS`.
        port: at which the machine serves.
    """
    program, *options = RUNS[run]
    return [program, "--rdma_cm", f"--port={port}", *options]


def server(port: int) -> list[str]:
    """Return the words that serve all measurements, one after the other."""
    return ["/bin/sh", "-ec", "; ".join(shlex.join(words(run, port)) for run in RUNS)]


def value(run: str, printed: str, device: str) -> float:
    """Return the shortest time of a message in microseconds, or the average of Gbit/s.

    Args:
        run: a key of `RUNS`.
        printed: by the client.
        device: name of the adapter that must have been used.

    Raises:
        ValueError: nothing was measured, or by another adapter.
    """
    used = re.search(r"\bDevice\s*: (\S+)", printed)
    if used and used[1] != device:
        raise ValueError(f"it went by the adapter {used[1]} instead of {device}")
    rows = re.findall(rf"^[ \t]*({_NUMBER}(?:[ \t]+{_NUMBER})*)[ \t]*$", printed, re.MULTILINE)
    # Bytes and iterations; then the shortest time, or the peak and the average.
    told = rows[0].split()[2 if run == "latency" else 3 :] if rows else []
    if not used or not told or not float(told[0]):
        raise ValueError(f"{RUNS[run][0]} has measured nothing")
    return float(told[0])
