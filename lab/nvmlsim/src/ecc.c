/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory errors and what the board did about them: ECC counters, remapped rows, retired pages. */
#include "ecc.h"

#include "call.h"

#define BANKS 640 /* of the row remapper's histogram, as listings of an A100 80GB show it; the same for all models */

/* ---- mode ---- */

NVML_CALL(READ, nvmlDeviceGetEccMode, (void *device, uint32_t *current, uint32_t *pending),
          (device, current, pending)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !current || !pending) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *current = r.g->ecc;
    *pending = r.g->ecc_pending;
    return NVML_SUCCESS;
}

NVML_GETTER(nvmlDeviceGetDefaultEccMode, uint32_t, physical_gpu, 1)

NVML_CALL(WRITE, nvmlDeviceSetEccMode, (void *device, uint32_t mode), (device, mode)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || mode > 1) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    r.g->ecc_pending = (int)mode;
    return NVML_SUCCESS;
}

/* ---- counters ---- */

uint64_t dram_errors(const gpu *g, uint32_t type, uint32_t counter) {
    int aggregate = counter == NVML_AGGREGATE_ECC;
    if (type == NVML_MEMORY_ERROR_TYPE_CORRECTED)
        return (uint64_t)g->ecc_corrected + (aggregate ? g->ecc_corrected_before : 0);
    return (uint64_t)g->ecc_uncorrected + (aggregate ? g->ecc_uncorrected_before : 0);
}

uint64_t sram_errors(const gpu *g, uint32_t type, uint32_t counter) {
    if (type == NVML_MEMORY_ERROR_TYPE_CORRECTED) return 0;
    return (uint64_t)g->sram_uncorrected + (counter == NVML_AGGREGATE_ECC ? g->sram_uncorrected_before : 0);
}

static nvml_return find(void *device, uint32_t type, uint32_t counter, const void *out, reference *r) {
    nvml_return result = any_device(device, r);
    if (result) return result;
    if (!out || type > NVML_MEMORY_ERROR_TYPE_UNCORRECTED || counter > NVML_AGGREGATE_ECC)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!r->g->ecc) return NVML_ERROR_NOT_SUPPORTED;
    /* Of an instance there is only what is not DRAM, uncorrected and volatile (nvml.h, nvmlDeviceGetMemoryErrorCounter).
     * The state does not say which instance an error hit: each reports the GPU's number. */
    if (is_mig_device(r) && (type != NVML_MEMORY_ERROR_TYPE_UNCORRECTED || counter != NVML_VOLATILE_ECC))
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetTotalEccErrors, (void *device, uint32_t type, uint32_t counter, uint64_t *out),
          (device, type, counter, out)) {
    reference r;
    nvml_return result = find(device, type, counter, out, &r);
    if (result) return result;
    *out = sram_errors(r.g, type, counter) + (is_mig_device(&r) ? 0 : dram_errors(r.g, type, counter));
    return NVML_SUCCESS;
}

/* Before Turing, what is now SRAM was counted in caches and register files: here in the level 2 cache. */
static nvml_return errors_at(const reference *r, uint32_t type, uint32_t counter, uint32_t location, uint64_t *out) {
    int old = r->g->model->architecture < NVML_DEVICE_ARCH_TURING;
    uint32_t sram = old ? NVML_MEMORY_LOCATION_L2_CACHE : NVML_MEMORY_LOCATION_SRAM;
    if (location == NVML_MEMORY_LOCATION_DRAM && !is_mig_device(r))
        *out = dram_errors(r->g, type, counter);
    else if (location == sram)
        *out = sram_errors(r->g, type, counter);
    else if (old && location < NVML_MEMORY_LOCATION_SRAM)
        *out = 0;
    else
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* "Querying volatile errors using device handles is currently not supported" on GPUs in MIG mode (nvml.h). */
NVML_CALL(READ, nvmlDeviceGetMemoryErrorCounter,
          (void *device, uint32_t type, uint32_t counter, uint32_t location, uint64_t *out),
          (device, type, counter, location, out)) {
    reference r;
    nvml_return result = find(device, type, counter, out, &r);
    if (result || location >= NVML_MEMORY_LOCATION_COUNT) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (r.g->current && !is_mig_device(&r) && counter == NVML_VOLATILE_ECC) return NVML_ERROR_NOT_SUPPORTED;
    return errors_at(&r, type, counter, location, out);
}

NVML_CALL(READ, nvmlDeviceGetSramEccErrorStatus, (void *device, sram_ecc_status_v1 *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != VERSION_WORD(sram_ecc_status_v1, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!r.g->ecc || r.g->model->architecture < NVML_DEVICE_ARCH_AMPERE) return NVML_ERROR_NOT_SUPPORTED;
    uint64_t aggregate = sram_errors(r.g, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC);
    *out = (sram_ecc_status_v1){.version = out->version,
                                .aggregate_parity = aggregate,
                                .volatile_parity = r.g->sram_uncorrected,
                                .aggregate_l2 = aggregate,
                                .threshold_exceeded = r.g->sram_threshold};
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceClearEccErrorCounts, (void *device, uint32_t counter), (device, counter)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || counter > NVML_AGGREGATE_ECC) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (!r.g->ecc) return NVML_ERROR_NOT_SUPPORTED;
    r.g->ecc_corrected = r.g->ecc_uncorrected = r.g->sram_uncorrected = 0;
    if (counter == NVML_AGGREGATE_ECC)
        r.g->ecc_corrected_before = r.g->ecc_uncorrected_before = r.g->sram_uncorrected_before = 0;
    return NVML_SUCCESS;
}

/* ---- remapped rows: from Ampere on ---- */

nvml_return row_remapper(const gpu *g) {
    /* "On MIG-enabled GPUs with active instances, querying the number of remapped rows is not supported" (nvml.h). */
    int hidden = g->current && gpu_has_instances(g);
    return g->model->architecture < NVML_DEVICE_ARCH_AMPERE || hidden ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetRemappedRows,
          (void *device, uint32_t *corrected, uint32_t *uncorrected, uint32_t *pending, uint32_t *failure),
          (device, corrected, uncorrected, pending, failure)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (!result) result = row_remapper(r.g);
    if (result) return result;
    if (!corrected || !uncorrected || !pending || !failure) return NVML_ERROR_INVALID_ARGUMENT;
    *corrected = r.g->remapped_corrected;
    *uncorrected = r.g->remapped_uncorrected;
    *pending = r.g->remap_pending;
    *failure = r.g->remap_failure;
    return NVML_SUCCESS;
}

/* Every remapped row took a spare of another bank; a remapping fails where a bank has none left. */
NVML_CALL(READ, nvmlDeviceGetRowRemapperHistogram, (void *device, row_remapper_histogram *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (!result) result = row_remapper(r.g);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    int rows = r.g->remapped_corrected + r.g->remapped_uncorrected, touched = rows < BANKS ? rows : BANKS - 1;
    *out = (row_remapper_histogram){.max = BANKS - touched - r.g->remap_failure, .high = touched,
                                    .none = r.g->remap_failure};
    return NVML_SUCCESS;
}

/* ---- retired pages: before Ampere ---- */

nvml_return page_retirement(const gpu *g) {
    return g->model->architecture < NVML_DEVICE_ARCH_AMPERE ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvml_return retired(void *device, uint32_t cause, uint32_t *count, uint64_t *addresses, uint64_t *times) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (!result) result = page_retirement(r.g);
    if (result) return result;
    if (!count || cause > NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT) return NVML_ERROR_INVALID_ARGUMENT;
    uint32_t room = *count;
    *count = cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT ? r.g->retired_double : r.g->retired_single;
    if (!room) return NVML_SUCCESS;
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (!addresses) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < *count; i++) {
        addresses[i] = (uint64_t)(cause * 64 + i + 1) << 16;
        if (times) times[i] = 0;
    }
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetRetiredPages, (void *device, uint32_t cause, uint32_t *count, uint64_t *addresses),
          (device, cause, count, addresses)) {
    return retired(device, cause, count, addresses, NULL);
}

NVML_CALL(READ, nvmlDeviceGetRetiredPages_v2,
          (void *device, uint32_t cause, uint32_t *count, uint64_t *addresses, uint64_t *times),
          (device, cause, count, addresses, times)) {
    return retired(device, cause, count, addresses, times);
}

NVML_CALL(READ, nvmlDeviceGetRetiredPagesPendingStatus, (void *device, uint32_t *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (!result) result = page_retirement(r.g);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = r.g->retired_pending;
    return NVML_SUCCESS;
}
