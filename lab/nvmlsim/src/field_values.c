/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nvmlDeviceGetFieldValues: one call for many numbers. Ids are those of nvml.h, NVML_FI_DEV_... */
#include <time.h>

#include "call.h"
#include "ecc.h"
#include "nvlink.h"

enum {
    ECC_CURRENT = 1,
    ECC_PENDING = 2,
    ECC_SBE_VOL_TOTAL = 3,
    ECC_DBE_VOL_TOTAL = 4,
    ECC_SBE_AGG_TOTAL = 5,
    ECC_DBE_AGG_TOTAL = 6,
    ECC_SBE_VOL_DEV = 11,
    ECC_DBE_VOL_DEV = 12,
    ECC_SBE_AGG_DEV = 22,
    ECC_DBE_AGG_DEV = 23,
    RETIRED_SBE = 29,
    RETIRED_DBE = 30,
    RETIRED_PENDING = 31,
    NVLINK_CRC_FLIT_ERROR_COUNT_L0 = 32,
    NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL = 38,
    NVLINK_CRC_DATA_ERROR_COUNT_TOTAL = 45,
    NVLINK_REPLAY_ERROR_COUNT_TOTAL = 52,
    NVLINK_RECOVERY_ERROR_COUNT_TOTAL = 59,
    MEMORY_TEMP = 82,
    NVLINK_SPEED_MBPS_L0 = 84,
    NVLINK_SPEED_MBPS_L5 = 89,
    NVLINK_SPEED_MBPS_COMMON = 90,
    NVLINK_LINK_COUNT = 91,
    PCIE_REPLAY_COUNTER = 94,
    NVLINK_SPEED_MBPS_L6 = 132,
    NVLINK_SPEED_MBPS_L11 = 137,
    REMAPPED_COR = 142,
    REMAPPED_UNC = 143,
    REMAPPED_PENDING = 144,
    REMAPPED_FAILURE = 145,
    NVLINK_ERROR_DL_REPLAY = 161, /* of the link that the scope names, as the next four */
    NVLINK_ERROR_DL_RECOVERY = 162,
    NVLINK_ERROR_DL_CRC = 163,
    NVLINK_GET_SPEED = 164,
    NVLINK_GET_STATE = 165,
    POWER_AVERAGE = 185,
    POWER_INSTANT = 186,
    POWER_MIN_LIMIT = 187,
    POWER_MAX_LIMIT = 188,
    POWER_DEFAULT_LIMIT = 189,
    POWER_CURRENT_LIMIT = 190,
    POWER_REQUESTED_LIMIT = 192,
    TEMPERATURE_SHUTDOWN_TLIMIT = 193,
    TEMPERATURE_SLOWDOWN_TLIMIT = 194,
    TEMPERATURE_MEM_MAX_TLIMIT = 195,
    TEMPERATURE_GPU_MAX_TLIMIT = 196,
    IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE = 199,
    RESET_STATUS = 226,
    DRAIN_AND_RESET_STATUS = 227,
    GET_GPU_RECOVERY_ACTION = 230
};
enum { RECOVERY_RESET = 1, RECOVERY_DRAIN_AND_RESET = 4 };

static nvml_return ecc(const gpu *g, uint32_t type, uint32_t counter, int whole, uint64_t *out) {
    if (!g->ecc) return NVML_ERROR_NOT_SUPPORTED;
    *out = dram_errors(g, type, counter) + (whole ? sram_errors(g, type, counter) : 0);
    return NVML_SUCCESS;
}

static nvml_return rows(const gpu *g, int value, uint64_t *out) {
    *out = value;
    return row_remapper(g);
}

static nvml_return pages(const gpu *g, int value, uint64_t *out) {
    *out = value;
    return page_retirement(g);
}

/* Limits are told as distances from the temperature at which the clocks are lowered; 0 is that one. */
static nvml_return margin(const gpu *g, int celsius, uint64_t *out) {
    *out = (uint32_t)(g->model->board.throttle_celsius - celsius);
    return g->model->architecture < NVML_DEVICE_ARCH_HOPPER ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvml_return link_is_up(const gpu *g, uint32_t link, uint64_t *out) {
    nvml_return result = nvlink_speed(g, link, out);
    *out = *out > 0;
    return result;
}

static nvml_return plain(int value, uint64_t *out) {
    *out = value;
    return NVML_SUCCESS;
}

static nvml_return read_field(const gpu *g, uint32_t id, uint32_t scope, uint64_t *out) {
    enum { CORRECTED = NVML_MEMORY_ERROR_TYPE_CORRECTED, UNCORRECTED = NVML_MEMORY_ERROR_TYPE_UNCORRECTED };
    switch (id) {
    case ECC_CURRENT: return plain(g->ecc, out);
    case ECC_PENDING: return plain(g->ecc_pending, out);
    case ECC_SBE_VOL_TOTAL: return ecc(g, CORRECTED, NVML_VOLATILE_ECC, 1, out);
    case ECC_DBE_VOL_TOTAL: return ecc(g, UNCORRECTED, NVML_VOLATILE_ECC, 1, out);
    case ECC_SBE_AGG_TOTAL: return ecc(g, CORRECTED, NVML_AGGREGATE_ECC, 1, out);
    case ECC_DBE_AGG_TOTAL: return ecc(g, UNCORRECTED, NVML_AGGREGATE_ECC, 1, out);
    case ECC_SBE_VOL_DEV: return ecc(g, CORRECTED, NVML_VOLATILE_ECC, 0, out);
    case ECC_DBE_VOL_DEV: return ecc(g, UNCORRECTED, NVML_VOLATILE_ECC, 0, out);
    case ECC_SBE_AGG_DEV: return ecc(g, CORRECTED, NVML_AGGREGATE_ECC, 0, out);
    case ECC_DBE_AGG_DEV: return ecc(g, UNCORRECTED, NVML_AGGREGATE_ECC, 0, out);
    case RETIRED_SBE: return pages(g, g->retired_single, out);
    case RETIRED_DBE: return pages(g, g->retired_double, out);
    case RETIRED_PENDING: return pages(g, g->retired_pending, out);
    case NVLINK_CRC_FLIT_ERROR_COUNT_L0:
    case NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL: return nvlink_errors(g, 0, 1, out); /* all are on the first link */
    case NVLINK_CRC_DATA_ERROR_COUNT_TOTAL:
    case NVLINK_REPLAY_ERROR_COUNT_TOTAL:
    case NVLINK_RECOVERY_ERROR_COUNT_TOTAL: return nvlink_errors(g, 0, 0, out);
    case NVLINK_SPEED_MBPS_L0 ... NVLINK_SPEED_MBPS_L5: return nvlink_speed(g, id - NVLINK_SPEED_MBPS_L0, out);
    case NVLINK_SPEED_MBPS_L6 ... NVLINK_SPEED_MBPS_L11: return nvlink_speed(g, id - NVLINK_SPEED_MBPS_L6 + 6, out);
    case NVLINK_SPEED_MBPS_COMMON: return nvlink_speed(g, 0, out);
    case NVLINK_ERROR_DL_REPLAY:
    case NVLINK_ERROR_DL_RECOVERY: return nvlink_errors(g, scope, 0, out);
    case NVLINK_ERROR_DL_CRC: return nvlink_errors(g, scope, 1, out);
    case NVLINK_GET_SPEED: return nvlink_speed(g, scope, out);
    case NVLINK_GET_STATE: return link_is_up(g, scope, out);
    case NVLINK_LINK_COUNT:
        *out = g->model->board.nvlinks;
        return *out ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case MEMORY_TEMP:
        *out = g->memory_temperature;
        return g->model->board.memory_celsius ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case PCIE_REPLAY_COUNTER: return plain(g->pcie_replay, out);
    case REMAPPED_COR: return rows(g, g->remapped_corrected, out);
    case REMAPPED_UNC: return rows(g, g->remapped_uncorrected, out);
    case REMAPPED_PENDING: return rows(g, g->remap_pending, out);
    case REMAPPED_FAILURE: return rows(g, g->remap_failure, out);
    case POWER_AVERAGE:
    case POWER_INSTANT: return plain(g->power, out);
    case POWER_MIN_LIMIT: return plain(g->model->board.least_watts * 1000, out);
    case POWER_MAX_LIMIT:
    case POWER_DEFAULT_LIMIT: return plain(g->model->board.watts * 1000, out);
    case POWER_CURRENT_LIMIT:
    case POWER_REQUESTED_LIMIT: return plain(g->power_limit, out);
    case TEMPERATURE_SHUTDOWN_TLIMIT: return margin(g, g->model->board.shutdown_celsius, out);
    case TEMPERATURE_SLOWDOWN_TLIMIT: return margin(g, g->slowdown_temperature, out);
    case TEMPERATURE_MEM_MAX_TLIMIT:
    case TEMPERATURE_GPU_MAX_TLIMIT: return margin(g, g->model->board.throttle_celsius, out);
    case IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE: return plain(g->model->units > 0, out);
    case RESET_STATUS: return plain(g->recovery_action == RECOVERY_RESET, out);
    case DRAIN_AND_RESET_STATUS: return plain(g->recovery_action == RECOVERY_DRAIN_AND_RESET, out);
    case GET_GPU_RECOVERY_ACTION: return plain(g->recovery_action, out);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

static uint32_t type_of(uint32_t id) {
    if (id >= ECC_SBE_VOL_TOTAL && id <= NVLINK_RECOVERY_ERROR_COUNT_TOTAL) return NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    if (id >= TEMPERATURE_SHUTDOWN_TLIMIT && id <= TEMPERATURE_GPU_MAX_TLIMIT) return NVML_VALUE_TYPE_SIGNED_INT;
    return NVML_VALUE_TYPE_UNSIGNED_INT;
}

/* Power and its limits are told of the GPU (scope 0), not of its module or its memory. */
static int is_elsewhere(const field_value *f) {
    return f->scope && f->id >= POWER_AVERAGE && f->id <= POWER_REQUESTED_LIMIT;
}

/* Succeeds where single fields do not: each has a result of its own. */
NVML_CALL(READ, nvmlDeviceGetFieldValues, (void *device, int count, field_value *fields), (device, count, fields)) {
    reference r;
    struct timespec now;
    nvml_return result = physical_gpu(device, &r);
    if (result || count < 0 || !fields) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    clock_gettime(CLOCK_REALTIME, &now);
    for (field_value *f = fields; f < fields + count; f++) {
        uint64_t value = 0;
        f->result = is_elsewhere(f) ? NVML_ERROR_NOT_SUPPORTED : read_field(r.g, f->id, f->scope, &value);
        f->timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
        f->latency = 0;
        f->type = type_of(f->id);
        f->value.u64 = value; /* the smaller members share its low bytes */
    }
    return NVML_SUCCESS;
}
