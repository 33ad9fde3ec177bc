# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a kernel driver in the log of a host that has no kernel of its own.

A host that shares its kernel has no /dev/kmsg, so its journal has no kernel messages. The journal of systemd
reads one if it finds one at its start, of any kind: here a pipe. A line written to it becomes a message
of the kernel (``_TRANSPORT=kernel``, ``journalctl -k``), which no ordinary user of the host can make. The
pipe has no name once the journal has it, so that nobody else waits at it, above all not systemd itself at
shutdown."""

from __future__ import annotations

import array
import fcntl
import os
import subprocess
import termios
import time
from pathlib import Path
from typing import IO

DEVICE = Path("/dev/kmsg")
WARNING = 4
READ_SECONDS = 20


def record(message: str, sequence: int, microseconds: int) -> str:
    """Return a line as the kernel's Documentation/ABI/testing/dev-kmsg describes it.

    :param sequence: number of the message since boot, from 0; the journal complains about gaps
    :param microseconds: since boot
    """
    return f"{WARNING},{sequence},{microseconds},-;{message}\n"


def _journal() -> str:
    show = ["systemctl", "show", "--property=MainPID", "--value", "systemd-journald.service"]
    return subprocess.run(show, check=True, capture_output=True, text=True).stdout.strip()


def _pipe_of(pid: str) -> Path | None:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        if str(descriptor.readlink()).startswith(str(DEVICE)):
            return descriptor
    return None


def _give_pipe_to_journal() -> Path:
    os.mkfifo(DEVICE, 0o600)
    both_ends = os.open(DEVICE, os.O_RDWR)  # nobody has to wait for the other end meanwhile
    try:
        subprocess.run(["systemctl", "restart", "systemd-journald.service"], check=True)
        pipe = _pipe_of(_journal())
    finally:
        DEVICE.unlink()
        os.close(both_ends)
    if pipe is None:
        raise OSError("The journal does not read kernel messages: see ReadKMsg= in journald.conf.")
    return pipe


def _wait_until_read(pipe: IO[str]) -> None:
    """The kernel keeps its messages while the journal restarts; the pipe loses what is still in it."""
    left = array.array("i", [1])
    end = time.monotonic() + READ_SECONDS
    while left[0]:
        if time.monotonic() > end:
            raise OSError(
                "The journal does not read its kernel messages: see systemctl status systemd-journald."
            )
        fcntl.ioctl(pipe, termios.FIONREAD, left)
        time.sleep(0.01)


def write(run: Path, message: str, in_journal: bool) -> None:
    """Write a message of the driver to RUN/kernel.log and to the journal.

    :param run: directory that a boot empties; its file gets the lines as /dev/kmsg shows them
    :param in_journal: whether this is a booted host, so that there is a journal
    """
    log = run / "kernel.log"
    sequence = len(log.read_text().splitlines()) if log.exists() else 0
    line = record(message, sequence, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000)
    if in_journal:
        pipe = _pipe_of(_journal()) or _give_pipe_to_journal()
        with pipe.open("w") as out:
            out.write(line)
            out.flush()
            _wait_until_read(out)
    with log.open("a") as out:
        out.write(line)
