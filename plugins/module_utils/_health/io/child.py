# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs read at once, each in a child process, which is killed when a call to the driver does not return.

A process that waits for a broken driver cannot always be killed: it is left behind then, holds no resource
that others wait for, and the caller gets an answer.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..._nvml.gpu import GpuError
from ..._nvml.io.readings import Failed, NotTold, Reader
from ..._nvml.io.session import _pci_address, session
from ..rules import HANDLE, Reading

# Seconds that reading all GPUs may take. Slurm ends HealthCheckProgram after 60 s (slurm.conf), and the log
# and DCGM are read beside.
TOTAL = 40.0
# Seconds that a killed process gets to end, and the least of them when the time for all GPUs is over.
GRACE = 5.0
SHORTEST_GRACE = 0.2


@dataclass(frozen=True)
class Answer:
    """Answer of the driver: version and GPUs; `error` or `hung_in` when it could not be asked for them.

    `stuck` is a process that hangs in the driver and could not be ended, empty for none.
    """

    gpus: tuple[Reading, ...] = ()
    driver_version: str = ""
    error: str = ""
    hung_in: str = ""
    stuck: str = ""


def read_gpus(call_timeout: float, total: float = TOTAL) -> Answer:
    """Read all GPUs at once, each in a child of its own.

    A GPU whose driver hangs is told with the call that it hung in, and the others are read nevertheless.

    Args:
        call_timeout: seconds that one call to the driver may take.
        total: seconds that all calls together may take.
    """
    patience = Patience(call_timeout, total)
    heard = _hear(_listen(_start(_read_driver), patience))
    if heard.error or heard.ended:
        hung_in = "" if heard.error else heard.call + heard.ended
        return Answer((), heard.driver_version, heard.error, hung_in, heard.stuck)
    # All of them are started before the first is waited for, so that several that hang cost one deadline.
    children = [_start(partial(_read_index, index)) for index in range(heard.count)]
    answers = [_hear(_listen(child, patience)) for child in children]
    return Answer(
        gpus=tuple(_reading(index, answer) for index, answer in enumerate(answers)),
        driver_version=heard.driver_version,
        error=next((answer.error for answer in answers if answer.error), ""),
        stuck=next((answer.stuck for answer in answers if answer.stuck), ""),
    )


@dataclass
class Heard:
    """Messages of a child until its end: the last call, and how it ended if it did not finish its work."""

    call: str = ""
    driver_version: str = ""
    count: int = 0
    error: str = ""
    ended: str = ""
    stuck: str = ""
    identity: dict[str, Any] = field(default_factory=dict)
    gpu: dict[str, Any] = field(default_factory=dict)


class Patience:
    """How long children are waited for.

    Args:
        call: seconds that a child may send nothing.
        total: seconds after which no child is waited for any more.
    """

    def __init__(self, call: float, total: float) -> None:
        self._call = call
        self._total = total
        self._end = time.monotonic() + total

    def wait(self) -> tuple[float, str]:
        """Return the seconds to wait for a child now, and the limit in words."""
        left = max(0.0, self._end - time.monotonic())
        if left < self._call:
            return left, f"{self._total:g} s for all GPUs"
        return self._call, f"{self._call:g} s"

    def grace(self) -> float:
        """Return the seconds that a killed child gets to end."""
        return min(GRACE, max(SHORTEST_GRACE, self._end + GRACE - time.monotonic()))


def _hear(messages: Iterable[dict[str, Any]]) -> Heard:
    heard = Heard()
    for message in messages:
        for name, value in message.items():
            if hasattr(heard, name):
                setattr(heard, name, value)
    return heard


def _reading(index: int, heard: Heard) -> Reading:
    if heard.gpu and not heard.ended:
        return Reading(**heard.gpu)
    identity = heard.identity or {"index": index, "uuid": "", "name": "", "pci_address": ""}
    return Reading(**identity, values={}, failures={}, hung_in=heard.call + heard.ended)


def _asks(send: Callable[[dict[str, Any]], None], work: Callable[[Reader], None]) -> None:
    """Do some work with NVML and tell each call before it is made; runs in the child."""

    def report(call: str) -> None:
        send({"call": call})

    report("nvmlInit")
    try:
        with session():
            work(Reader(report))
    except GpuError as error:
        send({"error": str(error)})
    except (Failed, NotTold) as error:
        send({"error": f"NVML starts and does not tell its driver and GPUs: {error}."})


def _read_driver(send: Callable[[dict[str, Any]], None]) -> None:
    def work(reader: Reader) -> None:
        send({"driver_version": reader.ask("nvmlSystemGetDriverVersion")})
        send({"count": reader.ask("nvmlDeviceGetCount")})

    _asks(send, work)


def _read_index(index: int, send: Callable[[dict[str, Any]], None]) -> None:
    _asks(send, lambda reader: _read_gpu(send, reader, index))


def _read_gpu(send: Callable[[dict[str, Any]], None], reader: Reader, index: int) -> None:
    identity = {"index": index, "uuid": "", "name": "", "pci_address": ""}
    try:
        handle = reader.ask("nvmlDeviceGetHandleByIndex", index)
        identity["uuid"] = reader.ask("nvmlDeviceGetUUID", handle)
        identity["name"] = reader.ask("nvmlDeviceGetName", handle)
        bus_id = reader.ask("nvmlDeviceGetPciInfo", handle).busId
        identity["pci_address"] = _pci_address(bus_id.decode() if isinstance(bus_id, bytes) else bus_id)
        send({"identity": identity})
        values, failures = reader.gpu(handle)
    except (Failed, NotTold) as error:
        values, failures = {}, {HANDLE: str(error)}
    send({"gpu": {**identity, "values": values, "failures": failures}})


def _messages(
    work: Callable[[Callable[[dict[str, Any]], None]], None], timeout: float
) -> Iterator[dict[str, Any]]:
    """Run `work` in a child and yield what it sends; kill it when it sends nothing for `timeout` seconds."""
    return _listen(_start(work), Patience(timeout, math.inf))


def _start(work: Callable[[Callable[[dict[str, Any]], None]], None]) -> tuple[int, int]:
    """Run `work` in a child; return its number and the pipe from which it is heard."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _work(work, sink)
    os.close(sink)
    return child, source


def _listen(started: tuple[int, int], patience: Patience) -> Iterator[dict[str, Any]]:
    """Yield what a child sends; kill it when it sends nothing for too long.

    The last message has the key `ended` when the child was killed or ended otherwise than by finishing its
    work, and the key `stuck` when it could not be killed.
    """
    child, source = started
    done = silent = False
    limit = ""
    buffer = b""
    try:
        while not done:
            seconds, limit = patience.wait()
            silent = not select.select([source], [], [], seconds)[0]
            chunk = b"" if silent else os.read(source, 65536)
            if not chunk:
                break
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for message in map(json.loads, lines):
                done = "done" in message
                yield message
    finally:
        os.close(source)
        code = _reap(child, patience.grace())
    if silent:
        identity = {"stuck": _identity(child)} if code is None else {}
        yield {"ended": f" within {limit}", **identity}
    elif not done:
        yield {"ended": f" (its process ended with code {code})"}


def _work(work: Callable[[Callable[[dict[str, Any]], None]], None], sink: int) -> None:
    """Do the work and end the process. It keeps nothing of the parent open, so nobody waits when it hangs."""
    code = 1
    try:
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
    return _identity(int(identity.partition(" ")[0])) == identity


def _identity(pid: int) -> str:
    """Return the number of a process and its start, as numbers are used again; empty when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # proc_pid_stat(5): the name in parentheses is field 2 and may hold anything, the start is field 22.
    return f"{pid} {stat.rpartition(')')[2].split()[19]}"
