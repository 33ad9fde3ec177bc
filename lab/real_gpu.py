"""Answers of a real GPU to what the simulator and the checks infer: read only, and without names of the site.

usage: python -m lab.real_gpu                  print a report as JSON
       python -m lab.real_gpu --compare FILE   name what differs between a report and the simulator

The report has no UUID, serial number, PCI address, host name, user or process. docs/unproved.md lists the
inferences, and which part of the report settles which.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

# `make setup` links the checkout there under its name in Ansible.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".work" / "collections"))

from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu, GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import Calls, Guarded
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.handle import by_uuid
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.readings import (
    Failed,
    NotTold,
    Reader,
)

CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
WORDS = 16  # of 64 processors each
LINKS = 18  # most NVLinks of a GPU (nvml.h, NVML_NVLINK_MAX_LINKS)
PROCESS_LISTS = tuple(f"nvmlDeviceGetComputeRunningProcesses{one}" for one in ("", "_v2", "_v3"))


def board(reader: Reader, handle: Any) -> dict[str, Any]:
    """Return what does not change on a GPU, and the names of the errors of what it does not tell."""

    def ask(call: str, *arguments: Any, of: Callable[[Any], Any] = lambda told: told) -> Any:
        try:
            return of(reader.ask(call, handle, *arguments))
        except (Failed, NotTold) as error:
            return f"no answer: {error}"

    return {
        "clocks": {
            "memory": ask("nvmlDeviceGetSupportedMemoryClocks", of=sorted),
            "most": [ask("nvmlDeviceGetMaxClockInfo", kind) for kind in (1, 2)],
        },
        "power_mw": {
            "range": ask("nvmlDeviceGetPowerManagementLimitConstraints", of=list),
            "default": ask("nvmlDeviceGetPowerManagementDefaultLimit"),
        },
        "temperatures": [ask("nvmlDeviceGetTemperatureThreshold", kind) for kind in range(4)],
        "architecture": ask("nvmlDeviceGetArchitecture"),
        "nvlinks": [ask("nvmlDeviceGetNvLinkRemoteDeviceType", link) for link in range(LINKS)],
        "affinity": ask("nvmlDeviceGetCpuAffinity", WORDS, of=lambda told: any(told)),
        "process_lists": {call: ask(call, of=lambda _told: "told") for call in PROCESS_LISTS},
    }


def partitions(gpu: Gpu) -> dict[str, Any]:
    """Return profiles, placements and instances of a GPU."""
    told = asdict(gpu)
    instances = [
        {
            "profile": one.profile.name,
            "id": one.id,
            "start": one.placement.start,
            "compute": [
                [each.id, each.start, each.slices, each.profile_id] for each in one.compute_instances
            ],
        }
        for one in gpu.instances
    ]
    kept = ("name", "memory_mib", "mig_capable", "mig_enabled", "mig_pending", "profiles")
    return {**{name: told[name] for name in kept}, "instances": instances}


def capabilities() -> list[str]:
    """Return the files of the driver's tree of capabilities, with the minor number that each tells."""
    found = []
    for file in sorted(CAPABILITIES.rglob("*")):
        if file.is_file():
            words = file.read_text(errors="replace").split()
            minor = words[words.index("DeviceFileMinor:") + 1] if "DeviceFileMinor:" in words else ""
            found.append(f"{file.relative_to(CAPABILITIES)} {minor}".strip())
    return found


def examine(calls: Calls) -> dict[str, Any]:
    """Return the report; runs in a guarded child process."""
    with session.session(calls) as nvml:
        survey = nvml.survey()
        gpus = []
        for gpu in survey.gpus:
            reader = Reader(lambda call, index=gpu.index: calls.report(call, index))
            handle = by_uuid(gpu.uuid, calls.hung)
            values, failures = reader.gpu(handle)
            readings = {"told": sorted(values), "failed": failures}
            gpus.append({**partitions(gpu), "board": board(reader, handle), "readings": readings})
        return {
            "driver": nvml.driver().version,
            "kernel": os.uname().release,
            "root": os.geteuid() == 0,
            "gpus": gpus,
            "unreadable": [one.reason for one in survey.unreadable],
            "capabilities": capabilities(),
        }


def differences(path: str, real: Any, simulated: Any) -> Iterator[str]:
    """Yield where two reports differ, a line for each."""
    if isinstance(real, dict) and isinstance(simulated, dict):
        for name in sorted({*real, *simulated}):
            yield from differences(f"{path}.{name}" if path else name, real.get(name), simulated.get(name))
    elif isinstance(real, list) and isinstance(simulated, list) and len(real) == len(simulated):
        for number, (one, other) in enumerate(zip(real, simulated, strict=True)):
            yield from differences(f"{path}[{number}]", one, other)
    elif real != simulated:
        yield f"{path}: {json.dumps(real)}, and {json.dumps(simulated)} in the simulator"


def compare(report: dict[str, Any]) -> list[str]:
    """Return what is static on the GPUs of a report and differs on simulated ones of the same names."""
    from lab import gpu_models  # it needs a compiler

    with gpu_models.machine():
        simulated = json.loads(json.dumps(Guarded().ask(examine)["gpus"]))  # lists in place of tuples
    known = {one["name"]: one for one in simulated}
    lines = []
    for number, gpu in enumerate(report["gpus"]):
        name = f"GPU {number} ({gpu['name']})"
        model = known.get(gpu["name"])
        if model is None:
            lines.append(f"{name}: the simulator does not know this model")
            continue
        for part in ("memory_mib", "mig_capable", "profiles", "board", "readings"):
            lines += [f"{name}: {line}" for line in differences(part, gpu[part], model[part])]
    return lines


def main() -> int:
    """Print a report, or compare one with the simulator.

    Returns:
        0, or 1 if the driver does not answer or the report differs.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--compare", metavar="FILE", type=Path, help="report of a real GPU")
    file: Path | None = parser.parse_args().compare
    if file:
        lines = compare(json.loads(file.read_text()))
        print("\n".join(lines) or "nothing differs")
        return int(bool(lines))
    try:
        report = Guarded().ask(examine)
    except GpuError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
