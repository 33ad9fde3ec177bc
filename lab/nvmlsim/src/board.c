/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the sensors and the bus of a board say: temperature, power, clocks, PCI Express, infoROM. */
#include "call.h"
#include "handles.h"

#define ALL_REASONS 0x1ff

/* ---- temperature ---- */

/* Boards from Hopper on report how far they are from their limits; the older ones show N/A there in nvidia-smi. */
static int reports_margin(const gpu *g) { return g->model->architecture >= NVML_DEVICE_ARCH_HOPPER; }

NVML_CALL(READ, nvmlDeviceGetTemperature, (void *device, int sensor, uint32_t *out), (device, sensor, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || sensor || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = r.g->temperature;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetTemperatureV, (void *device, temperature_v1 *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != VERSION_WORD(temperature_v1, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (out->sensor) return NVML_ERROR_INVALID_ARGUMENT;
    out->celsius = r.g->temperature;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetMarginTemperature, (void *device, margin_temperature_v1 *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != VERSION_WORD(margin_temperature_v1, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!reports_margin(r.g)) return NVML_ERROR_NOT_SUPPORTED;
    out->celsius = r.g->model->board.throttle_celsius - r.g->temperature;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetTemperatureThreshold, (void *device, uint32_t kind, uint32_t *out), (device, kind, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const board *b = &r.g->model->board;
    switch (kind) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: *out = b->shutdown_celsius; break;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: *out = r.g->slowdown_temperature; break;
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX: *out = b->memory_celsius; break;
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: *out = b->throttle_celsius; break;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
    return *out ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- power ---- */

NVML_GETTER(nvmlDeviceGetPowerUsage, uint32_t, physical_gpu, r.g->power)
NVML_GETTER(nvmlDeviceGetPowerManagementMode, uint32_t, physical_gpu, 1)
NVML_GETTER(nvmlDeviceGetPowerManagementLimit, uint32_t, physical_gpu, r.g->power_limit)
NVML_GETTER(nvmlDeviceGetPowerManagementDefaultLimit, uint32_t, physical_gpu, r.g->model->board.watts * 1000)
NVML_GETTER(nvmlDeviceGetEnforcedPowerLimit, uint32_t, physical_gpu, r.g->power_limit)
NVML_GETTER(nvmlDeviceGetPerformanceState, uint32_t, physical_gpu, 0)
NVML_ALIAS(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState)

NVML_CALL(READ, nvmlDeviceGetPowerManagementLimitConstraints, (void *device, uint32_t *least, uint32_t *most),
          (device, least, most)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !least || !most) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *least = r.g->model->board.least_watts * 1000;
    *most = r.g->model->board.watts * 1000;
    return NVML_SUCCESS;
}

static nvml_return limit_power(void *device, uint32_t limit) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result) return result;
    const board *b = &r.g->model->board;
    if (limit < b->least_watts * 1000u || limit > b->watts * 1000u) return NVML_ERROR_INVALID_ARGUMENT;
    r.g->power_limit = (int)limit;
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceSetPowerManagementLimit, (void *device, uint32_t limit), (device, limit)) {
    return limit_power(device, limit);
}

/* The call of nvidia-smi; the other scopes are of boards that have more than one. */
NVML_CALL(WRITE, nvmlDeviceSetPowerManagementLimit_v2, (void *device, const power_value_v2 *value), (device, value)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !value) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (value->version != VERSION_WORD(power_value_v2, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return value->scope == NVML_POWER_SCOPE_GPU ? limit_power(device, value->mw) : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- clocks ---- */

/* Within the locked clocks, also when idle. */
static int running_clock(const gpu *g) {
    if (!g->gpu_clock_most) return g->clock_sm;
    if (g->clock_sm < g->gpu_clock_least) return g->gpu_clock_least;
    return g->clock_sm > g->gpu_clock_most ? g->gpu_clock_most : g->clock_sm;
}

/* The video clock is said to be a part of the graphics clock; how large a part is invented. */
static nvml_return clock_of(void *device, uint32_t kind, int highest, uint32_t *out) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    int sm = highest ? r.g->model->board.sm_mhz : running_clock(r.g);
    switch (kind) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM: *out = sm; return NVML_SUCCESS;
    case NVML_CLOCK_MEM: *out = r.g->model->board.memory_mhz; return NVML_SUCCESS;
    case NVML_CLOCK_VIDEO: *out = sm * 9 / 10; return NVML_SUCCESS;
    default: return NVML_ERROR_INVALID_ARGUMENT;
    }
}

NVML_CALL(READ, nvmlDeviceGetClockInfo, (void *device, uint32_t kind, uint32_t *out), (device, kind, out)) {
    return clock_of(device, kind, 0, out);
}

NVML_CALL(READ, nvmlDeviceGetMaxClockInfo, (void *device, uint32_t kind, uint32_t *out), (device, kind, out)) {
    return clock_of(device, kind, 1, out);
}

NVML_CALL(READ, nvmlDeviceGetApplicationsClock, (void *device, uint32_t kind, uint32_t *out), (device, kind, out)) {
    return clock_of(device, kind, 1, out);
}

NVML_CALL(READ, nvmlDeviceGetDefaultApplicationsClock, (void *device, uint32_t kind, uint32_t *out),
          (device, kind, out)) {
    return clock_of(device, kind, 1, out);
}

NVML_GETTER(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, physical_gpu,
            r.g->throttle || r.g->process_count ? r.g->throttle : NVML_CLOCKS_EVENT_REASON_GPU_IDLE)
NVML_ALIAS(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons)
NVML_GETTER(nvmlDeviceGetSupportedClocksEventReasons, uint64_t, physical_gpu, ALL_REASONS)
NVML_ALIAS(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDeviceGetSupportedClocksEventReasons)

/* "On MIG-enabled GPUs, querying device utilization rates is not currently supported" (nvml.h). */
NVML_CALL(READ, nvmlDeviceGetUtilizationRates, (void *device, utilization *out), (device, out)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (is_mig_device(&r) || r.g->current) return NVML_ERROR_NOT_SUPPORTED;
    *out = (utilization){r.g->utilization, 0};
    return NVML_SUCCESS;
}

/* ---- PCI Express ---- */

NVML_GETTER(nvmlDeviceGetCurrPcieLinkGeneration, uint32_t, physical_gpu, r.g->pcie_generation)
NVML_GETTER(nvmlDeviceGetMaxPcieLinkGeneration, uint32_t, physical_gpu, r.g->model->board.pcie_generation)
NVML_GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, uint32_t, physical_gpu, r.g->model->board.pcie_generation)
NVML_GETTER(nvmlDeviceGetCurrPcieLinkWidth, uint32_t, physical_gpu, r.g->pcie_width)
NVML_GETTER(nvmlDeviceGetMaxPcieLinkWidth, uint32_t, physical_gpu, 16)
NVML_GETTER(nvmlDeviceGetPcieReplayCounter, uint32_t, physical_gpu, r.g->pcie_replay)

/* ---- infoROM ---- */

static nvml_return inforom(void *device) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    return !result && r.g->inforom_corrupted ? NVML_ERROR_CORRUPTED_INFOROM : result;
}

NVML_CALL(READ, nvmlDeviceValidateInforom, (void *device), (device)) { return inforom(device); }

NVML_CALL(READ, nvmlDeviceGetInforomConfigurationChecksum, (void *device, uint32_t *out), (device, out)) {
    nvml_return result = inforom(device);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = 0x5EED;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetInforomImageVersion, (void *device, char *out, uint32_t size), (device, out, size)) {
    nvml_return result = inforom(device);
    return result ? result : copy_text("1001.0200.00.05", out, size);
}
