/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MIG mode: what is in force, what is pending, and whether a change takes effect at once. */
#include "call.h"
#include "fields.h"
#include "handles.h"

NVML_CALL(READ, nvmlDeviceGetMigMode, (void *device, uint32_t *current, uint32_t *pending),
          (device, current, pending)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !current || !pending) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (!r.g->model->units) return NVML_ERROR_NOT_SUPPORTED;
    *current = r.g->current;
    *pending = r.g->pending;
    return NVML_SUCCESS;
}

/* Success only says that the mode is pending; *activation says whether it took effect (nvml.h, nvmlDeviceSetMigMode).
 * IN_USE for a held GPU and RESET_REQUIRED for pass-through are documented there; that Ampere alone needs the reset is
 * in the MIG guide. That existing instances keep the mode from being switched off is inferred. */
NVML_CALL(WRITE, nvmlDeviceSetMigMode, (void *device, uint32_t mode, nvml_return *activation),
          (device, mode, activation)) {
    reference r;
    nvml_return result = mig_capable_gpu(device, &r);
    if (result || mode > 1 || !activation) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    gpu *g = r.g;
    g->pending = (int)mode;
    *activation = NVML_SUCCESS;
    if (g->current == g->pending) return NVML_SUCCESS;
    if (gpu_is_held(g) || (!mode && gpu_has_instances(g)))
        *activation = NVML_ERROR_IN_USE;
    else if (g->model->mode_is_stored && g->passthrough)
        *activation = NVML_ERROR_RESET_REQUIRED;
    else {
        g->current = g->pending;
        if (g->model->mode_is_stored) fields_forget_settings(g); /* the GPU was reset; that this loses them is inferred */
        if (g->current) g->compute_mode = g->accounting = 0;
    }
    return NVML_SUCCESS;
}
