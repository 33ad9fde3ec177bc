# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of MPI on two machines: how the second one joins, and what they have measured. No I/O.

Open MPI has a program started on each other machine, `prted`, that starts the processes there. It asks an
agent for that, usually SSH. Here the agent prints the command, and its reader starts the program.
Source of the parameters: the command that mpirun of Open MPI 5.0.7 gives to its agent.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Name of a run, such as prterun-gpu02-788@0, and where its mpirun is reached: the same, a rank, an address.
RUN = re.compile(r"prterun-[A-Za-z0-9._-]{1,253}-[0-9]{1,10}@0")
# Of several addresses in the network all are told, with the lengths of their prefixes.
PLACE = re.compile(rf"({RUN.pattern})\.0;tcp://([0-9.,]{{7,255}}):[0-9]{{1,5}}:[0-9,]{{1,63}}")
# Parts of the other traffic of the measured interfaces may be lost to a counter that is read late.
PASSED = 0.9


def daemon(place: str, address: str) -> list[str]:
    """Return the words that start the program which joins a run of mpirun.

    Args:
        place: where mpirun is reached, from the command that it has printed.
        address: of its machine, in the network that is to be measured.

    Raises:
        ValueError: it is no such place, or one at another address.
    """
    found = PLACE.fullmatch(place)
    if not found:
        raise ValueError(f"mpirun cannot be reached at {place!r}")
    if address not in found[2].split(","):
        raise ValueError(f"mpirun is reached at {found[2]} instead of {address}")
    parameters = {
        "ess": "env",
        "ess_base_nspace": found[1],
        "ess_base_vpid": "1",
        "ess_base_num_procs": "2",
        "prte_hnp_uri": place,
    }
    return ["prted", *(word for name, value in parameters.items() for word in ("--prtemca", name, value))]


def measured(told: str, passed: int) -> dict[str, float]:
    """Return `latency_us`, of a message one way, and `gb_s`, of the slower direction.

    The shortest time and the fastest window of each direction count, as other programs delay the others.

    Args:
        told: by the processes, as JSON.
        passed: bytes that the interfaces in the network have sent and received meanwhile.

    Raises:
        ValueError: the processes have measured nothing, or over another network.
    """
    try:
        content = json.loads(told)
        latencies, ways = content["latency"], content["bandwidth"]
        values = {
            "latency_us": min(map(_positive, latencies)) * 1e6,
            "gb_s": min(max(map(_positive, way)) for way in ways) / 1e9,
        }
        sent = _positive(content["sent"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "the processes have measured nothing; let firewalls pass all ports between the machines"
        ) from error
    if passed < PASSED * sent:
        raise ValueError(
            f"the processes have sent {sent:.0f} bytes, and only {passed} went over this network's interfaces"
        )
    return values


def _positive(number: Any) -> float:
    if not isinstance(number, (int, float)) or not math.isfinite(number) or number <= 0:
        raise ValueError(f"{number!r} is no measured number")
    return float(number)
