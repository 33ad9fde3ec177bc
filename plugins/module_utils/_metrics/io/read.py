# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of the metrics of GPUs: NVML, in a child process, the hub's leases, certificates."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from ..._nvml.gpu import GpuError
from ..._nvml.io.guard import messages
from ..._nvml.io.readings import Failed, NotTold, Reader
from ..._nvml.io.session import session
from ..gpu import READINGS, GpuUse, Holder, SliceUse
from .utilization import utilization


def read_gpus(
    call_timeout: float, held: Mapping[int | None, str]
) -> tuple[tuple[GpuUse, ...], str, dict[int | None, str]]:
    """Read the use of all GPUs; a GPU whose driver hangs is a problem, and the others are read.

    Args:
        call_timeout: seconds that one call to the driver may take.
        held: processes that hang in the driver since earlier, by the GPU that they asked, which is not asked
            again; None for one that asked no GPU, so nothing is asked.

    Returns:
        the GPUs; why not all is told, empty when it is; further processes that hang in the driver and cannot
        be ended, like `held`.
    """
    found: dict[int, GpuUse] = {}
    problems: dict[int | None, str] = {
        index: f"The driver{_about(index)} still holds process {process.split()[0]} of an earlier run;"
        " reboot the machine."
        for index, process in held.items()
    }
    stuck: dict[int | None, str] = {}
    if None in held:
        return (), problems[None], stuck
    while True:
        call, index, ended = "", None, ""
        known = frozenset((*found, *problems))
        for message in messages(partial(_read, known), call_timeout):
            if "call" in message:
                call, index = message["call"], message["index"]
            if "error" in message:
                problems[index] = message["error"]
            if "gpu" in message:
                entry = message["gpu"]
                slices = tuple(SliceUse(**one) for one in entry.pop("slices"))
                found[entry["index"]] = GpuUse(**entry, slices=slices)
            ended = message.get("ended", "")
            if "stuck" in message:
                stuck[index] = message["stuck"]
        if ended:
            problems[index] = f"The driver did not return from {call}{_about(index)}{ended}."
        if not ended or index is None or index in known:
            return tuple(found[one] for one in sorted(found)), " ".join(problems.values()), stuck


def _about(index: int | None) -> str:
    return "" if index is None else f" of GPU {index}"


def _read(known: frozenset[int | None], send: Callable[[dict[str, Any]], None]) -> None:
    """Tell of all GPUs whose index is not known yet; runs in the child."""
    index: int | None = None

    def report(call: str) -> None:
        send({"call": call, "index": index})

    reader = Reader(report)
    report("nvmlInit")
    try:
        with session():
            for index in range(reader.ask("nvmlDeviceGetCount")):
                if index in known:
                    continue
                try:
                    send({"gpu": _gpu(reader, index)})
                except (Failed, NotTold) as error:
                    send({"error": f"GPU {index} does not answer: {error}."})
    except GpuError as error:
        send({"error": str(error)})
    except (Failed, NotTold) as error:
        send({"error": f"NVML starts and does not tell its GPUs: {error}."})


def _gpu(reader: Reader, index: int) -> dict[str, Any]:
    handle = reader.ask("nvmlDeviceGetHandleByIndex", index)
    uuid, name = reader.ask("nvmlDeviceGetUUID", handle), reader.ask("nvmlDeviceGetName", handle)
    values, _failures = reader.gpu(handle, READINGS)
    try:
        partitioned = bool(reader.ask("nvmlDeviceGetMigMode", handle)[0])
    except NotTold:
        partitioned = False
    whole = {"uuid": uuid, "profile": name, "values": values}
    return {
        "index": index,
        "uuid": uuid,
        "name": name,
        "values": values,
        "slices": list(_slices(reader, handle)) if partitioned else [whole],
    }


def _slices(reader: Reader, handle: Any) -> Iterator[dict[str, Any]]:
    devices = list(_mig_devices(reader, handle))
    instances = [instance for _device, instance in devices]
    # NVML reports it of a whole GPU instance, which several slices may share.
    alone = [instance for instance in instances if instances.count(instance) == 1]
    shares = utilization(reader, handle, alone)
    for device, instance in devices:
        # The name of a MIG device ends with its profile: "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
        # (NVIDIA MIG User Guide, device names of `nvidia-smi -L`).
        name = reader.ask("nvmlDeviceGetName", device).rpartition("MIG ")[2]
        values, _failures = reader.gpu(device, ("memory", "processes"))
        if instance in shares:
            values["utilization"] = shares[instance]
        yield {"uuid": reader.ask("nvmlDeviceGetUUID", device), "profile": name, "values": values}


def _mig_devices(reader: Reader, handle: Any) -> Iterator[tuple[Any, int]]:
    """Yield the MIG devices of a GPU, each with the id of its GPU instance."""
    for index in range(reader.ask("nvmlDeviceGetMaxMigDeviceCount", handle)):
        try:
            device = reader.ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        except NotTold:
            continue
        yield device, reader.ask("nvmlDeviceGetGpuInstanceId", device)


def read_holders(leases: Path) -> tuple[dict[str, list[Holder]], str]:
    """Read who holds which slice.

    Args:
        leases: the file of the hub; where there is none nobody holds anything.

    Returns:
        holders by the UUIDs of slices; why they are not told, empty when they are.
    """
    try:
        content = json.loads(leases.read_text(encoding="utf-8"))
        found: dict[str, list[Holder]] = {}
        for uuid, holder in _holders(content):
            found.setdefault(uuid, []).append(holder)
        return found, ""
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return {}, f"The leases in {leases} cannot be read: {error!r}."


def _holders(content: Mapping[str, Any]) -> Iterator[tuple[str, Holder]]:
    for owner, entry in content.get("leases", {}).items():
        user, _slash, server = owner.partition("/")
        since = datetime.fromisoformat(entry["taken"]).timestamp()
        for piece in entry["slices"]:
            yield piece["uuid"], Holder(user, server, since)


def read_certificates(files: Mapping[str, str]) -> dict[str, float]:
    """Return when certificates end, in seconds since 1970, by name; one that is not there is left out.

    Args:
        files: paths of PEM files by the name of what shows the certificate.
    """
    found = {}
    for name, file in files.items():
        done = subprocess.run(
            ["/usr/bin/openssl", "x509", "-noout", "-enddate", "-in", file],
            capture_output=True,
            text=True,
            check=False,
            env={"LC_ALL": "C"},
        )
        # notAfter=Nov 22 02:40:47 2027 GMT
        _key, _equals, end = done.stdout.strip().partition("=")
        if done.returncode == 0:
            ends = datetime.strptime(end, "%b %d %H:%M:%S %Y GMT").replace(tzinfo=timezone.utc)
            found[name] = ends.timestamp()
    return found
