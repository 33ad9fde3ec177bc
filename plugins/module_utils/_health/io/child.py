# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs read in a child process, which is killed when a call to the driver does not return.

A process that waits for a broken driver cannot always be killed: it is left behind then, holds no resource
that others wait for, and the caller gets an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._nvml.gpu import GpuError
from ..._nvml.io.readings import Failed, NotTold, Reader
from ..._nvml.io.session import _pci_address, session
from ..rules import HANDLE, Reading

# Seconds that a killed process gets to end.
GRACE = 5.0


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


def read_gpus(call_timeout: float) -> Answer:
    """Read all GPUs.

    A GPU whose driver hangs is told with the call that it hung in, and the others are read nevertheless.

    Args:
        call_timeout: seconds that one call to the driver may take.
    """
    found: dict[int, Reading] = {}
    version = stuck = ""
    while True:
        identity: dict[str, Any] | None = None
        call, index, ended = "", None, ""
        for message in _messages(lambda send: _read(send, frozenset(found)), call_timeout):
            if "error" in message:
                return Answer(error=message["error"])
            if "driver" in message:
                version = message["driver"]
            if "call" in message:
                call, index = message["call"], message["index"]
            if "identity" in message:
                identity = message["identity"]
            if "gpu" in message:
                reading = Reading(**message["gpu"])
                found[reading.index] = reading
                identity = None
            ended, stuck = message.get("ended", ""), message.get("stuck", stuck)
        if not ended:
            return Answer(tuple(found[one] for one in sorted(found)), version, stuck=stuck)
        if index is None:
            return Answer(driver_version=version, hung_in=call + ended, stuck=stuck)
        unknown = {"index": index, "uuid": "", "name": "", "pci_address": ""}
        found[index] = Reading(**(identity or unknown), values={}, failures={}, hung_in=call + ended)


def _read(send: Callable[[dict[str, Any]], None], known: frozenset[int]) -> None:
    """Tell about the driver and all GPUs whose index is not known yet; runs in the child."""
    index: int | None = None

    def report(call: str) -> None:
        send({"call": call, "index": index})

    reader = Reader(report)
    report("nvmlInit")
    try:
        with session():
            send({"driver": reader.ask("nvmlSystemGetDriverVersion")})
            for index in range(reader.ask("nvmlDeviceGetCount")):
                if index not in known:
                    _read_gpu(send, reader, index)
    except GpuError as error:
        send({"error": str(error)})
    except (Failed, NotTold) as error:
        send({"error": f"NVML starts and does not tell its driver and GPUs: {error}."})


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
    """Run `work` in a child and yield what it sends; kill it when it sends nothing for `timeout` seconds.

    The last message has the key `ended` when the child was killed or ended otherwise than by finishing its
    work, and the key `stuck` when it could not be killed.
    """
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _work(work, sink)
    os.close(sink)
    done = silent = False
    buffer = b""
    try:
        while not done:
            silent = not select.select([source], [], [], timeout)[0]
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
        code = _reap(child)
    if silent:
        identity = {"stuck": _identity(child)} if code is None else {}
        yield {"ended": f" within {timeout:g} s", **identity}
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


def _reap(child: int) -> int | None:
    """Kill a child and collect it; None when it does not end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + GRACE
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
