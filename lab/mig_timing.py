"""How good and how fast plans of partitions are, and what the module costs: `python -m lab.mig_timing`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from lab.mig_oracle import Layout, Oracle, Request
from lab.nvmlsim import build
from lab.nvmlsim.install import GUEST
from lab.stage import ROOT

# `make setup` links the checkout there under its name in Ansible.
COLLECTIONS = ROOT / ".work" / "collections"
sys.path.insert(0, str(COLLECTIONS))

from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import Flavor, Item  # noqa: E402
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply  # noqa: E402
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor  # noqa: E402
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (  # noqa: E402
    ComputeInstance,
    Gpu,
    GpuInstance,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session  # noqa: E402

# One of each geometry of the simulator.
MODELS = ("a30", "a100-80gb", "h100-80gb", "rtx-pro-6000")
RUNS = 15
CHANGES = 200
PLAN_AIM = 20.0  # ms, of 99 in 100 plans
MODULE_AIM = 1.5  # times ping with one walk through NVML
# Of a GPU instance and the compute instance in it.
CALLS = 2

# Programs that Ansible starts on a machine, without its connection.
HARNESS = """
from ansible.module_utils import basic
basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = {arguments!r}.encode(), "legacy"
import {module} as module
{before}
module.main()
"""
# Calls that read the partitions of a machine, with the binding's code only.
WALK = """
import ctypes, pynvml as n
n.nvmlInit()
def optional(call, *words):
    try:
        return call(*words)
    except n.NVMLError:
        return None
def many(call, kind, room, *words):
    found, count = (kind * room)(), ctypes.c_uint(room)
    call(*words, found, ctypes.byref(count))
    return found[:count.value]
for index in range(n.nvmlDeviceGetCount()):
    gpu = n.nvmlDeviceGetHandleByIndex(index)
    for call in (n.nvmlDeviceGetUUID, n.nvmlDeviceGetName, n.nvmlDeviceGetPciInfo, n.nvmlDeviceGetMigMode,
                 n.nvmlDeviceGetMemoryInfo, n.nvmlDeviceGetMinorNumber, n.nvmlDeviceGetSerial):
        call(gpu)
    for profile in range(18):
        info = optional(n.nvmlDeviceGetGpuInstanceProfileInfo, gpu, profile)
        if info is None:
            continue
        many(n.nvmlDeviceGetGpuInstancePossiblePlacements, n.c_nvmlGpuInstancePlacement_t, 16, gpu, info.id)
        for one in many(n.nvmlDeviceGetGpuInstances, n.c_nvmlGpuInstance_t, info.instanceCount, gpu, info.id):
            n.nvmlGpuInstanceGetInfo(one)
            for width in range(9):
                inner = optional(n.nvmlGpuInstanceGetComputeInstanceProfileInfo, one, width, 0)
                if inner is None:
                    continue
                kind = n.c_nvmlComputeInstance_t
                for compute in many(n.nvmlGpuInstanceGetComputeInstances, kind, 8, one, inner.id):
                    n.nvmlComputeInstanceGetInfo(compute)
    n.nvmlDeviceGetComputeRunningProcesses(gpu)
    for number in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        device = optional(n.nvmlDeviceGetMigDeviceHandleByIndex, gpu, number)
        if device is not None:
            for call in (n.nvmlDeviceGetUUID, n.nvmlDeviceGetGpuInstanceId, n.nvmlDeviceGetComputeInstanceId,
                         n.nvmlDeviceGetComputeRunningProcesses):
                call(device)
n.nvmlShutdown()
"""


@dataclass
class Found:
    """Results for a geometry: plans, milliseconds of each, calls that they and others would make."""

    plans: int = 0
    worse: int = 0
    milliseconds: list[float] = field(default_factory=list)
    planned: int = 0
    fewest: int = 0
    rebuilt: int = 0

    def add(self, other: Found) -> None:
        """Add what came out for another part."""
        self.plans += other.plans
        self.worse += other.worse
        self.milliseconds += other.milliseconds
        self.planned += other.planned
        self.fewest += other.fewest
        self.rebuilt += other.rebuilt


def verify(gpu: Gpu, oracle: Oracle, currents: list[Layout]) -> Found:
    """Plan from some layouts to every multiset of profiles, and verify each plan by brute force."""
    found = Found()
    by_id = {profile.id: profile for profile in gpu.profiles}
    flavors = {request: flavor_of(gpu, request) for request in oracle.by_request}
    for current in currents:
        instances = []
        for number, (profile, start) in enumerate(sorted(current)):
            placement = next(one for one in by_id[profile].placements if one.start == start)
            whole = ComputeInstance(0, by_id[profile].slices, "")
            instances.append(GpuInstance(number, by_id[profile], placement, (whole,)))
        machine = replace(gpu, mig_enabled=True, mig_pending=True, instances=tuple(instances))
        for request, flavor in flavors.items():
            # of this thread, so that what else runs on the machine does not count
            started = time.thread_time()
            plan = plan_flavor(machine, flavor)
            found.milliseconds.append((time.thread_time() - started) * 1000)
            layout = frozenset((slot.profile.id, slot.placement.start) for slot in plan.layout)
            best = oracle.best(current, frozenset(), request)
            assert best is not None
            found.worse += (
                best != (len(plan.destroy), oracle.room(layout)) or oracle.request(layout) != request
            )
            found.plans += 1
            found.planned += CALLS * (len(plan.destroy) + len(plan.create))
            found.fewest += CALLS * fewest(current, best[0], request)
            found.rebuilt += CALLS * rebuilt(oracle, current, request)
    return found


def fewest(current: Layout, gone: int, request: Request) -> int:
    """Instances that must be destroyed and created at least, when so many have to go."""
    return gone + sum(count for _profile, count in request) - (len(current) - gone)


def rebuilt(oracle: Oracle, current: Layout, request: Request) -> int:
    """Instances that are destroyed and created by clearing the GPU whenever its profiles are wrong."""
    return (
        0 if oracle.request(current) == request else len(current) + sum(count for _profile, count in request)
    )


def verify_all(gpu: Gpu) -> Found:
    """Plan from every layout of a geometry to every multiset of profiles, on all cores."""
    oracle = Oracle.of_profiles(gpu.profiles)
    for layout in oracle.layouts:
        oracle.room(layout)
    layouts = sorted(oracle.layouts, key=sorted)
    cores = os.cpu_count() or 1
    found = Found()
    with ProcessPoolExecutor(cores) as pool:
        for part in pool.map(
            verify, [gpu] * cores, [oracle] * cores, [layouts[n::cores] for n in range(cores)]
        ):
            found.add(part)
    return found


def executed(nvml: session.Nvml, oracle: Oracle, log: Path) -> float:
    """Carry out random changes on the first GPU; returns mutating calls over the fewest possible."""
    chance = random.Random(1)  # noqa: S311 - the same changes every time
    layouts = sorted(oracle.layouts, key=sorted)
    fewest_calls = 0
    current: Layout = frozenset()
    log.write_text("")
    for _change in range(CHANGES):
        gpu = nvml.gpus()[0]
        request = oracle.request(chance.choice(layouts))
        best = oracle.best(current, frozenset(), request)
        assert best is not None
        fewest_calls += CALLS * fewest(current, best[0], request)
        plan = plan_flavor(gpu, flavor_of(gpu, request))
        if plan.changed:
            apply.apply(nvml, [plan])
        current = frozenset((slot.profile.id, slot.placement.start) for slot in plan.layout)
    calls = sum(line.split()[2] == "write" for line in log.read_text().splitlines())
    return calls / fewest_calls


def flavor_of(gpu: Gpu, request: Request) -> Flavor:
    """A request of the oracle in the grammar of the planner."""
    names = {profile.id: profile.name for profile in gpu.profiles}
    return Flavor("layout", tuple(Item(names[profile], count) for profile, count in request))


def seconds_and_mebibytes(code: str) -> tuple[float, float]:
    """Run Python in a process of its own: wall time, and the most memory that it took."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _pid, _status, usage = os.wait4(process.pid, 0)
    result = json.loads(output)
    if result.get("failed") or result.get("changed"):
        raise SystemExit(f"mig_timing: {output}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def module_cost(folder: Path) -> dict[str, tuple[float, float]]:
    """Median wall time and memory of the module when there is nothing to do, and of ping with a walk."""
    module = "ansible_collections.gpufarm.cluster.plugins.modules.mig_partition"
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {"flavor": "7x 1g.10gb"}})
    lock_here = f"import pathlib; module.FOLDER = pathlib.Path({str(folder)!r})"
    partition = HARNESS.format(arguments=arguments, module=module, before=lock_here)
    ping = HARNESS.format(
        arguments=json.dumps({"ANSIBLE_MODULE_ARGS": {}}), module="ansible.modules.ping", before=WALK
    )
    subprocess.run([sys.executable, "-c", partition], check=True, stdout=subprocess.DEVNULL)
    taken: dict[str, list[tuple[float, float]]] = {"ping and one walk": [], "mig_partition": []}
    for _run in range(RUNS):
        taken["ping and one walk"].append(seconds_and_mebibytes(ping))
        taken["mig_partition"].append(seconds_and_mebibytes(partition))
    return {
        name: (statistics.median(one for one, _ in some), statistics.median(one for _, one in some))
        for name, some in taken.items()
    }


def simulate(*models: str) -> None:
    """Make a machine with simulated GPUs."""
    subprocess.run([sys.executable, GUEST / "simgpu.py", "init", *models], check=True)


def main() -> None:
    """Print the figures of one run."""
    console = Console(highlight=False, soft_wrap=True)
    library = build(ROOT / ".work" / "nvmlsim")
    # The binding asks for the library by name, and gets the one that is loaded.
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory(prefix="gpufarm-mig-timing-") as name:
        folder = Path(name)
        os.environ |= {
            "NVMLSIM_STATE": name,
            "NVMLSIM_LIBRARY": str(library),
            "NVMLSIM_UID": "0",
            "LD_LIBRARY_PATH": str(library.parent),
            "PYTHONPATH": str(COLLECTIONS),
        }
        console.print("[bold]The module when 8 GPUs have 7 partitions each and are to have them[/]")
        simulate("a100-80gb:8")
        cost = module_cost(folder)
        for what, (seconds, mebibytes) in cost.items():
            console.print(f"  {what}: {seconds * 1000:.0f} ms, {mebibytes:.0f} MiB")
        (walk, walk_memory), (module, module_memory) = cost.values()
        console.print(
            f"  mig_partition is {module / walk:.2f} times the time (aim: below {MODULE_AIM})"
            f" and {module_memory / walk_memory:.2f} times the memory"
        )

        console.print("[bold]Every layout of a GPU to every multiset of profiles[/]")
        simulate(*MODELS)
        with session.session() as nvml:
            gpus = nvml.gpus()
            os.environ["NVMLSIM_LOG"] = str(folder / "calls.log")
            ratio = executed(nvml, Oracle.of_profiles(gpus[0].profiles), folder / "calls.log")
            del os.environ["NVMLSIM_LOG"]
        for gpu in gpus:
            found = verify_all(gpu)
            milliseconds = sorted(found.milliseconds)
            console.print(
                f"  {gpu.name}: {found.plans} plans, {found.worse} of them not the best; of 100 plans 99"
                f" take less than {milliseconds[len(milliseconds) * 99 // 100]:.2f} ms (aim: {PLAN_AIM:g}),"
                f" the slowest {milliseconds[-1]:.2f} ms; mutating calls over the fewest possible"
                f" {found.planned / found.fewest:.2f}, with clear and rebuild"
                f" {found.rebuilt / found.fewest:.2f}"
            )
        console.print(f"  {CHANGES} changes of {gpus[0].name} carried out: calls over the fewest {ratio:.2f}")


if __name__ == "__main__":
    main()
