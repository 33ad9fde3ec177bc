# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's Multi-Process Service (MPS) for slices that are shared.

``python -m gpufarm_hub.spawning.mps SETTINGS UUID`` tells the daemon of a slice what each program may use.

A unit for each slice, `jupyterhub-mps@UUID.service`, runs the control daemon of MPS as long as a notebook
wants it. Programs of the notebooks find it by a folder of sockets, and compute at the same time instead of
in turns. The command above, which the unit runs before any notebook comes, gives each a part of the slice's
memory.

Sources: nvidia-cuda-mps-control(1), and its ``--help`` (driver 580). The rest was tried on an H200 with
that driver (docs/unproved.md): programs of several accounts need ``-multiuser-server``; a client inside the
walls of a notebook needs the folder and nothing else; one that cannot reach the daemon computes without it;
the limit has to be set at the daemon, where its clients cannot raise it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpufarm_hub.sharing import shared
from gpufarm_hub.sharing.slices import GpuQueryError, Slice, read_gpus

PROC = Path("/proc")
FOLDER = "/run/jupyterhub-mps"  # root's alone
SEEN = "/tmp/nvidia-mps"  # noqa: S108 - where programs look, in the notebook's own /tmp
PROGRAM = "nvidia-cuda-mps-control"
NAME = "nvidia-cuda-mps"  # as the kernel keeps that of the daemon, and of its server
LIMIT = "default_device_pinned_mem_limit"  # of the first device, the only one that the daemon sees
PATIENCE = 10.0  # seconds in which the daemon must listen; it takes a tenth of one


class MpsError(Exception):
    """The daemon cannot be told the limit; the text is for the administrator."""


def is_service(pid: int) -> bool:
    """Tell whether a process is one of MPS, which has a slice open as its clients do.

    Daemon and server are root's (`-multiuser-server`), and a user cannot make one that is.
    """
    folder = PROC / str(pid)
    try:
        name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
        return name == NAME and folder.stat().st_uid == 0
    except OSError:  # it has ended
        return False


def properties(pieces: Sequence[Slice]) -> dict[str, list[str]]:
    """Return the properties that give a notebook's unit the MPS of its slice.

    The notebook starts without it where it fails: its programs then take turns. Programs of a notebook with
    several slices would need several folders, and MPS reads one; so they take turns, too.
    """
    if len(pieces) != 1:
        return {}
    unit = f"jupyterhub-mps@{pieces[0].uuid}.service"
    return {"Wants": [unit], "After": [unit], "BindPaths": [f"-{FOLDER}/{pieces[0].uuid}:{SEEN}"]}


def limit_mib(settings: Path, uuid: str) -> int:
    """Return the MiB of memory that each program may have on a slice: an equal part for each notebook.

    Raises:
        MpsError: there is no such slice, or it may not be shared.
        GpuQueryError: the GPUs do not answer.
    """
    entries = json.loads(settings.read_text(encoding="utf-8"))["shared_slices"]
    piece = next((one for one in read_gpus().slices if one.uuid == uuid), None)
    notebooks = shared.number(shared.read(entries), piece.profile) if piece else 1
    if not piece or notebooks < 2:
        raise MpsError(f"{uuid} is no slice that may be shared.")
    return piece.memory // notebooks // 2**20


def set_limit(mib: int, patience: float = PATIENCE) -> None:
    """Tell the daemon the memory that each program may have.

    Args:
        mib: of memory.
        patience: seconds in which the daemon must take it.

    Raises:
        MpsError: it does not.
    """
    end = time.monotonic() + patience
    # It rounds what it tells, and not what it takes: 9728M is told as 9G.
    while not re.fullmatch(r"\d+[KMG]?", told := _ask(f"set_{LIMIT} 0 {mib}M", f"get_{LIMIT} 0")):
        if time.monotonic() > end:
            raise MpsError(
                f"The control daemon of MPS does not take the limit {mib}M: {told or 'no answer'}."
            )
        time.sleep(0.1)


def _ask(*commands: str) -> str:
    lines = "".join(f"{command}\n" for command in commands)
    made = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, check=False)
    return (made.stdout + made.stderr).strip()


def main(settings: str, uuid: str) -> None:
    """Give the programs on a slice their part of its memory."""
    try:
        set_limit(limit_mib(Path(settings), uuid))
    except (MpsError, GpuQueryError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
