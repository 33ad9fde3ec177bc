# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU's life through whatever release of nvidia-ml-py is found first; prints what it saw as JSON."""

from __future__ import annotations

import ctypes
import json

import pynvml as n


def main() -> None:
    n.nvmlInit()
    gpu = n.nvmlDeviceGetHandleByIndex(0)
    seen = {"name": n.nvmlDeviceGetName(gpu), "before": n.nvmlDeviceGetMigMode(gpu)}
    seen["activation"] = n.nvmlDeviceSetMigMode(gpu, 1)
    seen["profile"] = n.nvmlDeviceGetGpuInstanceProfileInfo(gpu, n.NVML_GPU_INSTANCE_PROFILE_3_SLICE).name
    place = n.c_nvmlGpuInstancePlacement_t(4, 4)
    instance = n.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, ctypes.byref(place))
    compute = n.nvmlGpuInstanceCreateComputeInstance(instance, n.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    found = (n.c_nvmlGpuInstance_t * 2)()
    count = ctypes.c_uint(0)
    n.nvmlDeviceGetGpuInstances(gpu, 9, found, ctypes.byref(count))
    info = n.nvmlGpuInstanceGetInfo(found[0])
    seen["instances"] = [count.value, info.placement.start, info.placement.size]
    mig = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    seen["uuid"] = n.nvmlDeviceGetUUID(mig)
    seen["memory"] = n.nvmlDeviceGetMemoryInfo(mig).total >> 20
    seen["same"] = n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(seen["uuid"].encode())) == seen["uuid"]
    try:
        n.nvmlGpuInstanceDestroy(instance)
    except n.NVMLError_InUse:
        seen["in_use"] = True
    n.nvmlComputeInstanceDestroy(compute)
    n.nvmlGpuInstanceDestroy(instance)
    seen["after"] = n.nvmlDeviceSetMigMode(gpu, 0)
    n.nvmlShutdown()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
