# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures RDMA from this machine to another on which perftest serves."""

from __future__ import annotations

import time
from pathlib import Path

from .. import perftest
from ..part import NotMeasured
from .run import PAUSE
from .user import own_folder, run_as

# Seconds after which a program is ended, as one may wait for a server that has missed it, and for which it is
# begun again.
LIMIT, PATIENCE = 30.0, 60.0


def rdma(network: str, bind: str, address: str, port: int, device: str) -> dict[str, float]:
    """Measure RDMA between two machines.

    Args:
        network: in CIDR notation, the name of the link.
        bind: address of this machine in it.
        address: of the other machine in it.
        port: at which it serves.
        device: name of this machine's adapter in the network.

    Raises:
        NotMeasured: the other machine did not answer, or another adapter was used.
    """
    try:
        with own_folder() as own:
            told = {run: _measured(own, run, address, port, device) for run in perftest.RUNS}
    except ValueError as error:
        raise NotMeasured(f"RDMA from {bind} to {address} was not measured: {error}.") from error
    return {
        f"rdma.{network}.latency_us": told["latency"],
        # So a machine that sends slowly is slow with both neighbours.
        f"rdma.{network}.gbit_s": min(told["sent"], told["received"]),
    }


def _measured(own: Path, run: str, address: str, port: int, device: str) -> float:
    """Return the value of a run; the server needs a moment before each."""
    until = time.monotonic() + PATIENCE
    words = [*perftest.words(run, port), address]
    while True:
        try:
            printed = run_as(own, {}, words, LIMIT)
            break
        except NotMeasured as error:
            if time.monotonic() > until:
                raise ValueError(str(error).rstrip(".")) from error
        time.sleep(PAUSE)
    return perftest.value(run, printed, device)
