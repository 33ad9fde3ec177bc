/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MIG devices: one for each compute instance that the caller may use. */
#include "call.h"
#include "compute_instance.h"
#include "handles.h"

NVML_CALL(READ, nvmlDeviceIsMigDeviceHandle, (void *device, uint32_t *out), (device, out)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = is_mig_device(&r);
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetGpuInstanceId, (void *device, uint32_t *out), (device, out)) {
    reference r;
    nvml_return result = mig_device(device, &r, NVML_ERROR_NOT_SUPPORTED);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = r.gi;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetComputeInstanceId, (void *device, uint32_t *out), (device, out)) {
    reference r;
    nvml_return result = mig_device(device, &r, NVML_ERROR_NOT_SUPPORTED);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = r.ci;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (void *device, void **out), (device, out)) {
    reference r;
    nvml_return result = mig_device(device, &r, NVML_ERROR_INVALID_ARGUMENT);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = gpu_handle(r.index);
    return NVML_SUCCESS;
}

/* "Returns zero if MIG is not supported or enabled" (nvml.h). */
NVML_CALL(READ, nvmlDeviceGetMaxMigDeviceCount, (void *device, uint32_t *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = r.g->current ? r.g->model->max_instances : 0;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetMigDeviceHandleByIndex, (void *device, uint32_t index, void **out), (device, index, out)) {
    reference r;
    nvml_return result = mig_capable_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    while (next_mig_device(&r))
        if (!index--) {
            *out = mig_handle(&r);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

NVML_CALL(READ, nvmlDeviceGetAttributes_v2, (void *device, device_attributes *out), (device, out)) {
    reference r;
    nvml_return result = mig_device(device, &r, NVML_ERROR_NOT_SUPPORTED);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const profile *p = profile_of(&r);
    int slices = instance_of(&r)->compute[r.ci].slices;
    *out = (device_attributes){compute_multiprocessors(p, slices), p->copy, p->decoder, p->encoder, p->jpeg, p->ofa,
                               p->slices, slices, p->mib};
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlDeviceGetAttributes, nvmlDeviceGetAttributes_v2)
