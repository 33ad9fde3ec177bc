# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A child process that calls the driver, and is killed when a call does not return.

A process that waits for a broken driver cannot always be killed: it is left behind then, holds no resource
that others wait for, and the caller gets an answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Seconds that a killed process gets to end, and the least of them when the time for all calls is over.
GRACE = 5.0
SHORTEST_GRACE = 0.2
# linux/prctl.h
PR_SET_PDEATHSIG = 1


Work = Callable[[Callable[[dict[str, Any]], None]], None]


class Patience:
    """How long children are waited for.

    Args:
        call: seconds that a child may send nothing.
        total: seconds after which no child is waited for any more.
    """

    def __init__(self, call: float, total: float = math.inf) -> None:
        self._call = call
        self._total = total
        self._end = time.monotonic() + total

    def wait(self, announced: float | None) -> tuple[float, str]:
        """Return the seconds to wait for a child now, and the limit in words.

        Args:
            announced: seconds that the child has asked for, None for the usual ones.
        """
        call = announced or self._call
        left = max(0.0, self._end - time.monotonic())
        if left < call:
            return left, f"{self._total:g} s for all GPUs"
        return call, f"{call:g} s"

    def grace(self) -> float:
        """Return the seconds that a killed child gets to end."""
        return min(GRACE, max(SHORTEST_GRACE, self._end + GRACE - time.monotonic()))


def messages(work: Work, timeout: float) -> Iterator[dict[str, Any]]:
    """Run `work` in a child and yield what it sends; kill it when it sends nothing for `timeout` seconds.

    Messages are those of `listen`.
    """
    return listen(start(work), Patience(timeout))


def start(work: Work) -> tuple[int, int]:
    """Run `work` in a child; return its number and the pipe from which it is heard."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _work(work, sink)
    os.close(sink)
    return child, source


def listen(started: tuple[int, int], patience: Patience) -> Iterator[dict[str, Any]]:
    """Yield what a child sends; kill it when it sends nothing for too long.

    A message whose key `timeout` is a number allows that many seconds until the next one.
    The last message has the key `ended` when the child was killed or ended otherwise than by finishing its
    work, and the key `stuck` when it could not be killed.
    """
    child, source = started
    done = silent = False
    limit = ""
    announced: float | None = None
    buffer = b""
    try:
        while not done:
            seconds, limit = patience.wait(announced)
            silent = not select.select([source], [], [], seconds)[0]
            chunk = b"" if silent else os.read(source, 65536)
            if not chunk:
                break
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for message in map(json.loads, lines):
                done = "done" in message
                announced = message.get("timeout")
                yield message
    finally:
        os.close(source)
        code = _reap(child, patience.grace())
    if silent:
        identity = {"stuck": _identity(child)} if code is None else {}
        yield {"ended": f" within {limit}", **identity}
    elif not done:
        yield {"ended": f" (its process ended with code {code})"}


def _work(work: Work, sink: int) -> None:
    """Do the work and end the process. It keeps nothing of the parent open, so nobody waits when it hangs."""
    code = 1
    try:
        # A parent that is killed takes the child with it. If it is gone already, the next message fails.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # Where the parent has no standard output, the pipe may have its number.
        sink = fcntl.fcntl(sink, fcntl.F_DUPFD, 3)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os.closerange(3, sink)
        os.closerange(sink + 1, 1024)

        def send(message: dict[str, Any]) -> None:
            os.write(sink, json.dumps(message).encode() + b"\n")

        work(send)
        send({"done": True})
        code = 0
    finally:
        os._exit(code)


def _reap(child: int, grace: float) -> int | None:
    """Kill a child and collect it; None when it does not end within some seconds."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def is_stuck(identity: str) -> bool:
    """Whether a process that could not be ended is still there."""
    pid = identity.partition(" ")[0]
    return pid.isdecimal() and _identity(int(pid)) == identity


def _identity(pid: int) -> str:
    """Return the number of a process and its start, as numbers are used again; empty when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # proc_pid_stat(5): the name in parentheses is field 2 and may hold anything, the start is field 22.
    return f"{pid} {stat.rpartition(')')[2].split()[19]}"
