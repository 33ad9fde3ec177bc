# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times messages between two processes of MPI, as the micro-benchmarks osu_latency and osu_bw do.

The process whose environment names a file writes there, as JSON, `latency`, seconds that one small message
took in each batch, `bandwidth`, bytes a second of both directions in each batch of windows of large messages,
and `sent`, bytes of all messages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from mpi4py import MPI

SMALL, BATCH, BATCHES = 8, 200, 10  # bytes; round trips in a batch; batches
LARGE, WINDOW = 2**20, 16  # bytes; messages that are under way at once
SENDS = 4  # batches of windows in each direction
SECONDS, MOST = 0.25, 500  # that a batch of windows takes about, and the most windows in it

world = MPI.COMM_WORLD
other = 1 - world.rank
small = bytearray(SMALL)
sent = [bytearray(LARGE) for _message in range(WINDOW)]
sizes: list[int] = []
got = [bytearray(LARGE) for _message in range(WINDOW)]


def round_trips() -> None:
    """Exchange a batch of small messages."""
    for _trip in range(BATCH):
        if world.rank == 0:
            world.Send(small, other)
            world.Recv(small, other)
        else:
            world.Recv(small, other)
            world.Send(small, other)


def windows(sender: int, number: int) -> None:
    """Send windows of large messages one way, each answered, as messages may wait in the sender's memory."""
    for _window in range(number):
        if world.rank == sender:
            MPI.Request.Waitall([world.Isend(message, other) for message in sent])
            world.Recv(small, other)
        else:
            MPI.Request.Waitall([world.Irecv(message, other) for message in got])
            world.Send(small, other)


def timed(work: Callable[[], None]) -> float:
    """Return the seconds that work took in the process where it took longest."""
    world.Barrier()
    begun = MPI.Wtime()
    work()
    return world.allreduce(MPI.Wtime() - begun, MPI.MAX)


def bandwidth(sender: int) -> list[float]:
    """Return the bytes a second of one direction, in each batch."""
    windows(sender, 1)  # makes the connections
    number = max(1, min(MOST, int(SECONDS / timed(lambda: windows(sender, 1)))))
    sizes.append((2 + number * SENDS) * WINDOW * LARGE)
    return [number * WINDOW * LARGE / timed(lambda: windows(sender, number)) for _batch in range(SENDS)]


round_trips()
told = {
    "latency": [timed(round_trips) / BATCH / 2 for _batch in range(BATCHES)],
    "bandwidth": [bandwidth(sender) for sender in range(2)],
    "sent": sum(sizes),
}
if path := os.environ.get("GPUFARM_BENCHMARK"):
    Path(path).write_text(json.dumps(told), encoding="ascii")
