# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs read at once for a health check, each in a guarded child process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..._nvml.gpu import GpuError, pci_address
from ..._nvml.io.guard import Patience, listen, start
from ..._nvml.io.readings import Failed, NotTold, Reader
from ..._nvml.io.session import session
from ..baseline import Hang
from ..rules import HANDLE, Reading

# Seconds that reading all GPUs may take. Slurm ends HealthCheckProgram after 60 s (slurm.conf), and the log
# and DCGM are read beside.
TOTAL = 40.0


@dataclass(frozen=True)
class Answer:
    """Answer of the driver: version and GPUs; `error` or `hung_in` when it could not be asked for them.

    `stuck` is a process that waits for the call in `hung_in` and could not be ended, empty for none.
    """

    gpus: tuple[Reading, ...] = ()
    driver_version: str = ""
    error: str = ""
    hung_in: str = ""
    stuck: str = ""


def read_gpus(call_timeout: float, total: float = TOTAL, hung: Sequence[Hang] = ()) -> Answer:
    """Read all GPUs at once, each in a child of its own.

    A GPU whose driver hangs is told with the call that it hung in, and the others are read nevertheless.

    Args:
        call_timeout: seconds that one call to the driver may take.
        total: seconds that all calls together may take.
        hung: processes of earlier runs that still wait for the driver: their GPUs are not asked, and none is
            when one of them waits for a call about no GPU.
    """
    known = {
        one.gpu["index"]: Reading(**one.gpu, values={}, failures={}, hung_in=one.call, stuck=one.process)
        for one in hung
        if one.gpu
    }
    for one in hung:
        if not one.gpu:
            return Answer(tuple(known.values()), hung_in=one.call, stuck=one.process)
    patience = Patience(call_timeout, total)
    heard = _hear(listen(start(_read_driver), patience))
    if heard.error or heard.ended:
        hung_in = "" if heard.error else heard.call + heard.ended
        return Answer(tuple(known.values()), heard.driver_version, heard.error, hung_in, heard.stuck)
    # All of them are started before the first is waited for, so that several that hang cost one deadline.
    children = {
        index: start(partial(_read_index, index)) for index in range(heard.count) if index not in known
    }
    answers = {index: _hear(listen(child, patience)) for index, child in children.items()}
    readings = known | {index: _reading(index, answer) for index, answer in answers.items()}
    return Answer(
        gpus=tuple(readings[index] for index in sorted(readings)),
        driver_version=heard.driver_version,
        error=next((answer.error for answer in answers.values() if answer.error), ""),
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
    if heard.error:
        return Reading(**identity, values={}, failures={HANDLE: heard.error})
    return Reading(**identity, values={}, failures={}, hung_in=heard.call + heard.ended, stuck=heard.stuck)


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
        identity["pci_address"] = pci_address(reader.ask("nvmlDeviceGetPciInfo", handle).busId)
        send({"identity": identity})
        values, failures = reader.gpu(handle)
    except (Failed, NotTold) as error:
        values, failures = {}, {HANDLE: str(error)}
    send({"gpu": {**identity, "values": values, "failures": failures}})
