# SPDX-License-Identifier: GPL-3.0-or-later
"""Users' programs that have a slice open which no notebook of theirs has; they end before somebody gets it.

Control groups end what a notebook has started. This is for what came another way, such as a session of an
account that the machine knows itself, or a device that a container was given by hand.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpufarm_hub.people import accounts
from gpufarm_hub.spawning import engines

from . import devices, gpu_use
from .desk import Desk
from .devices import DeviceError
from .recovery import Log
from .slices import GpuQueryError, Slice

PROC = Path("/proc")
PATIENCE = 10  # seconds in which the kernel ends a process; one that waits for a driver may take long


@dataclass(frozen=True)
class Stray:
    """A program that was ended.

    Attributes:
        user: its account.
        pid: its process id.
        command: its name.
    """

    user: str
    pid: int
    command: str


def end(pieces: Iterable[Slice], ours: Callable[[], frozenset[int]] = frozenset) -> list[Stray]:
    """End programs of users that have slices open and belong to no notebook that may.

    Args:
        pieces: the slices of one lease.
        ours: returns the processes of the notebooks that have them; of those that have not started there are
            none. It is asked after it is known who has slices open, so that no process is missing in its
            answer.

    Returns:
        The ended processes.

    Raises:
        DeviceError: a program does not end, or it is not known which there are.
        EngineError: the notebook's processes are not known.
    """
    pieces = list(pieces)
    try:
        computing = gpu_use.processes([piece.uuid for piece in pieces])
    except GpuQueryError as error:
        raise DeviceError(str(error)) from error
    nodes = {path.stat().st_rdev for piece in pieces for path in devices.own_nodes_of(piece) if path.exists()}
    found = {*_having_open(nodes), *(pid for pids in computing.values() for pid in pids)}
    return [stray for pid in sorted(found and found - ours()) if (stray := _end(pid))]


def clear(desk: Desk, log: Log, pieces: Collection[Slice]) -> None:
    """Do as `end` for slices of one lease, with the notebooks of all who hold them, and write it down."""

    def ours() -> frozenset[int]:
        units = [one.unit for one in desk.leases.all() if not frozenset(pieces).isdisjoint(one.pieces)]
        return frozenset[int]().union(*(engines.of(unit).processes(unit) for unit in units))

    for stray in end(pieces, ours):
        desk.record("stray", f"{stray.user}/", pid=stray.pid, command=stray.command)
        log.warning("Ended a program on slices that are not its user's: %s", stray)


def _having_open(nodes: set[int]) -> Iterator[int]:
    """Yield the processes that have one of these device numbers open."""
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if any(map(nodes.__contains__, _devices_of(folder / "fd"))):
                yield int(folder.name)


def _devices_of(descriptors: Path) -> Iterator[int]:
    for link in descriptors.iterdir():
        with suppress(OSError):
            # Only of what is a device by its name: to look at a file on a server that is down takes forever.
            if str(link.readlink()).startswith("/dev/"):
                yield link.stat().st_rdev


def _end(pid: int) -> Stray | None:
    """End a process of a person; None when it is none, or has ended."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        uid = (PROC / str(pid)).stat().st_uid
        command = (PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
        if not accounts.is_person(uid):
            return None
        signal.pidfd_send_signal(process, signal.SIGKILL)
        if not select.select([process], [], [], PATIENCE)[0]:
            raise DeviceError(
                f"process {pid} ({command}) uses a slice that is not its user's, and does not end"
            )
    except (FileNotFoundError, ProcessLookupError):
        return None
    finally:
        os.close(process)
    return Stray(_name(uid), pid, command)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
