# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a process of MPI on this machine that talks with one on another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .. import processes
from ..part import NotMeasured
from .user import own_folder, run_as

# Seconds: some for the start, and two for each direction; slow networks take longer for their windows.
LIMIT = 90.0
# Where the kernel shows interfaces.
CLASS = Path("/sys/class/net")


def between(network: str, bind: str, address: str, place: str, interfaces: Iterable[str]) -> dict[str, float]:
    """Measure messages between a process on this machine and one on another, where mpirun waits for this one.

    Args:
        network: in CIDR notation, the one that the processes talk over.
        bind: address of this machine in it.
        address: of the other machine in it.
        place: where its mpirun is reached, from the command that it has printed.
        interfaces: of this machine in the network.

    Raises:
        NotMeasured: the processes did not talk, or over another network.
    """
    try:
        words = processes.daemon(place, address)
        with own_folder() as own:
            told = own / "told.json"
            environment = {
                # Without it, files are in the folder for all.
                "TMPDIR": str(own),
                "GPUFARM_BENCHMARK": str(told),
                "PRTE_MCA_prte_if_include": network,
            }
            before = _passed(interfaces)
            _join(own, environment, words)
            passed = _passed(interfaces) - before
            # Nothing is there if the processes did not find each other.
            text = told.read_text(encoding="ascii") if told.exists() else ""
        values = processes.measured(text, passed)
    except (OSError, ValueError) as error:
        raise NotMeasured(f"MPI from {bind} to {address} was not measured: {error}.") from error
    return {f"mpi.{network}.{name}": value for name, value in values.items()}


def _join(own: Path, environment: Mapping[str, str], words: Sequence[str]) -> None:
    try:
        run_as(own, environment, words, LIMIT)
    except NotMeasured as error:
        raise ValueError(str(error).rstrip(".")) from error


def _passed(interfaces: Iterable[str]) -> int:
    """Return the bytes that interfaces have sent and received."""
    return sum(
        int((CLASS / interface / "statistics" / f"{way}_bytes").read_text(encoding="ascii"))
        for interface in interfaces
        for way in ("rx", "tx")
    )
