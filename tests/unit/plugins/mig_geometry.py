"""GPUs for tests, with the published geometry of real models or one made up on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    ComputeInstance,
    Gpu,
    GpuInstance,
    Placement,
    Process,
    Profile,
)

MODELS: dict[str, Any] = json.loads((Path(__file__).parent / "mig_geometry.json").read_text())["models"]


def profiles(model: str) -> tuple[Profile, ...]:
    """The profiles of a model, as NVML tells them."""
    return tuple(
        Profile(
            id=one["id"],
            name=one["name"],
            slices=one["slices"],
            memory_mib=0,
            max_count=one["max_count"],
            placements=tuple(Placement(start, one["size"]) for start in one["starts"]),
            engines=tuple(one["engines"].items()),
        )
        for one in MODELS[model]
    )


def gpu(model: str = "A100-80GB", **changes: Any) -> Gpu:
    """A GPU in MIG mode, without partitions; `changes` are fields of Gpu."""
    values: dict[str, Any] = {
        "index": 0,
        "minor": 0,
        "uuid": "GPU-0",
        "name": model,
        "serial": "1",
        "pci_address": "0000:07:00.0",
        "memory_mib": 81920,
        "mig_capable": True,
        "mig_enabled": True,
        "mig_pending": True,
        "profiles": profiles(model) if model in MODELS else (),
        "instances": (),
        "processes": (),
    }
    return Gpu(**{**values, **changes})


def instance(
    profile: Profile, placement: Placement, number: int, slices: tuple[int, ...] | None = None
) -> GpuInstance:
    """A GPU instance; `slices` are the widths of its compute instances, by default one of full width."""
    widths = (profile.slices,) if slices is None else slices
    starts = [sum(widths[:place]) for place in range(len(widths))]
    return GpuInstance(
        number,
        profile,
        placement,
        tuple(
            ComputeInstance(n, width, f"MIG-{number}-{n}", start)
            for n, (width, start) in enumerate(zip(widths, starts, strict=True))
        ),
    )


def partitioned(model: str, *places: str, used: tuple[str, ...] = (), hollow: tuple[str, ...] = ()) -> Gpu:
    """A GPU with partitions such as "3g.40gb at 4".

    :arg used: those among them that a program uses
    :arg hollow: those among them without a compute instance
    """
    by_name = {profile.name: profile for profile in profiles(model)}
    made = []
    for number, place in enumerate(places, start=1):
        name, _, start = place.partition(" at ")
        placement = next(one for one in by_name[name].placements if one.start == int(start))
        made.append(instance(by_name[name], placement, number, () if place in hollow else None))
    processes = [Process(1000 + one.id, "python3", one.id, 0) for one in made if str(one) in used]
    return gpu(model, instances=tuple(made), processes=tuple(processes))
