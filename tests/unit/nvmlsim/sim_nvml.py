# SPDX-License-Identifier: GPL-3.0-or-later
"""Short forms of what the tests ask of NVML."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml as n


def gpu(index: int = 0) -> Any:
    return n.nvmlDeviceGetHandleByIndex(index)


def code(call: Callable[..., Any], *arguments: Any) -> int:
    """Return the NVML return code of a call."""
    try:
        call(*arguments)
    except n.NVMLError as error:
        return error.value
    return n.NVML_SUCCESS


def profiles(device: Any) -> dict[str, Any]:
    """Return the profiles of a GPU by their short names."""
    found = {}
    for index in range(18):
        try:
            profile = n.nvmlDeviceGetGpuInstanceProfileInfo(device, index)
        except (n.NVMLError_NotSupported, n.NVMLError_InvalidArgument):
            continue
        found[profile.name.removeprefix("MIG ")] = profile
    return found


def placements(device: Any, profile_id: int) -> list[tuple[int, int]]:
    count = ctypes.c_uint(0)
    n.nvmlDeviceGetGpuInstancePossiblePlacements(device, profile_id, None, ctypes.byref(count))
    found = (n.c_nvmlGpuInstancePlacement_t * count.value)()
    n.nvmlDeviceGetGpuInstancePossiblePlacements(device, profile_id, found, ctypes.byref(count))
    return [(place.start, place.size) for place in found]


def instances(device: Any) -> list[Any]:
    found: list[Any] = []
    for profile in profiles(device).values():
        some = (n.c_nvmlGpuInstance_t * profile.instanceCount)()
        count = ctypes.c_uint(0)
        n.nvmlDeviceGetGpuInstances(device, profile.id, some, ctypes.byref(count))
        found += some[: count.value]
    return found


def places(device: Any) -> list[tuple[int, int, int]]:
    """Return profile id, start and size of all GPU instances, sorted by start."""
    infos = [n.nvmlGpuInstanceGetInfo(instance) for instance in instances(device)]
    return sorted(
        ((info.profileId, info.placement.start, info.placement.size) for info in infos),
        key=lambda place: place[1],
    )


def create(device: Any, *profile_ids: int) -> list[int]:
    """Create GPU instances where the driver puts them; returns the return codes."""
    return [code(n.nvmlDeviceCreateGpuInstance, device, profile_id) for profile_id in profile_ids]


def create_at(device: Any, profile_id: int, start: int, size: int) -> Any:
    place = n.c_nvmlGpuInstancePlacement_t(start, size)
    return n.nvmlDeviceCreateGpuInstanceWithPlacement(device, profile_id, ctypes.byref(place))


def mig_devices(device: Any) -> list[Any]:
    found = []
    for index in range(n.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            found.append(n.nvmlDeviceGetMigDeviceHandleByIndex(device, index))
        except n.NVMLError_NotFound:
            break
    return found


def mig_uuids(device: Any) -> list[str]:
    return [n.nvmlDeviceGetUUID(mig) for mig in mig_devices(device)]
