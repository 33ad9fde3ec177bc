/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings of a board that the driver forgets when it is unloaded: locked clocks, compute mode, accounting mode.
 * What is refused, and on which architectures, is as nvml.h says of each call. */
#include "call.h"
#include "handles.h"

#define STEP_MHZ 15 /* between graphics clocks, as published listings of nvidia-smi -q -d SUPPORTED_CLOCKS show it */

/* ---- clocks ---- */

static int is_memory_clock(const board *b, uint32_t mhz) {
    return mhz && (mhz == (uint32_t)b->memory_mhz || mhz == (uint32_t)b->lower_memory_mhz);
}

NVML_CALL(READ, nvmlDeviceGetSupportedMemoryClocks, (void *device, uint32_t *count, uint32_t *out),
          (device, count, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const board *b = &r.g->model->board;
    uint32_t room = *count;
    *count = b->lower_memory_mhz ? 2 : 1;
    if (room < *count || !out) return NVML_ERROR_INSUFFICIENT_SIZE;
    out[0] = b->memory_mhz;
    if (b->lower_memory_mhz) out[1] = b->lower_memory_mhz;
    return NVML_SUCCESS;
}

/* From the highest down to the clock of an idle GPU. */
NVML_CALL(READ, nvmlDeviceGetSupportedGraphicsClocks,
          (void *device, uint32_t memory_mhz, uint32_t *count, uint32_t *out), (device, memory_mhz, count, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const board *b = &r.g->model->board;
    if (!is_memory_clock(b, memory_mhz)) return NVML_ERROR_NOT_FOUND;
    uint32_t room = *count;
    *count = (b->sm_mhz - b->idle_mhz) / STEP_MHZ + 1;
    if (room < *count || !out) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++) out[i] = b->sm_mhz - STEP_MHZ * i;
    return NVML_SUCCESS;
}

static nvml_return lock(void *device, int architecture, reference *r) {
    nvml_return result = physical_gpu(device, r);
    if (result) return result;
    return r->g->model->architecture < architecture ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceSetGpuLockedClocks, (void *device, uint32_t least, uint32_t most),
          (device, least, most)) {
    reference r;
    nvml_return result = lock(device, NVML_DEVICE_ARCH_VOLTA, &r);
    if (result) return result;
    const board *b = &r.g->model->board;
    if (least > most || least < (uint32_t)b->idle_mhz || most > (uint32_t)b->sm_mhz) return NVML_ERROR_INVALID_ARGUMENT;
    r.g->gpu_clock_least = (int)least;
    r.g->gpu_clock_most = (int)most;
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceResetGpuLockedClocks, (void *device), (device)) {
    reference r;
    nvml_return result = lock(device, NVML_DEVICE_ARCH_VOLTA, &r);
    if (!result) r.g->gpu_clock_least = r.g->gpu_clock_most = 0;
    return result;
}

NVML_CALL(WRITE, nvmlDeviceSetMemoryLockedClocks, (void *device, uint32_t least, uint32_t most),
          (device, least, most)) {
    reference r;
    nvml_return result = lock(device, NVML_DEVICE_ARCH_AMPERE, &r);
    if (result) return result;
    const board *b = &r.g->model->board;
    if (least > most || !is_memory_clock(b, least) || !is_memory_clock(b, most)) return NVML_ERROR_INVALID_ARGUMENT;
    r.g->memory_clock_least = (int)least;
    r.g->memory_clock_most = (int)most;
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceResetMemoryLockedClocks, (void *device), (device)) {
    reference r;
    nvml_return result = lock(device, NVML_DEVICE_ARCH_AMPERE, &r);
    if (!result) r.g->memory_clock_least = r.g->memory_clock_most = 0;
    return result;
}

/* ---- modes ---- */

/* "On MIG-enabled GPUs, compute mode would be set to DEFAULT and changing it is not supported"; the same is said of
 * accounting mode, which is disabled there. */
NVML_GETTER(nvmlDeviceGetComputeMode, uint32_t, any_device, r.g->current ? 0 : r.g->compute_mode)
NVML_GETTER(nvmlDeviceGetAccountingMode, uint32_t, physical_gpu, r.g->current ? 0 : r.g->accounting)

NVML_CALL(WRITE, nvmlDeviceSetComputeMode, (void *device, uint32_t mode), (device, mode)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || mode >= NVML_COMPUTEMODE_COUNT) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (r.g->current || mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD) return NVML_ERROR_NOT_SUPPORTED;
    r.g->compute_mode = (int)mode;
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceSetAccountingMode, (void *device, uint32_t mode), (device, mode)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || mode > 1) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (r.g->current) return NVML_ERROR_NOT_SUPPORTED;
    r.g->accounting = (int)mode;
    return NVML_SUCCESS;
}
