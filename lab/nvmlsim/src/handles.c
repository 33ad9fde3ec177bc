/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "handles.h"

#include <stdio.h>

#include "nodes.h"

/* A handle is the address of its cell in one of these tables, so that it needs no bookkeeping. */
#define MAX_SLICES (MAX_GPUS * MAX_GPU_INSTANCES * MAX_COMPUTE_INSTANCES)
static char gpu_cells[MAX_GPUS], gpu_instance_cells[MAX_GPUS * MAX_GPU_INSTANCES];
static char compute_instance_cells[MAX_SLICES], mig_cells[MAX_SLICES];

static int slice_cell(int index, int gi, int ci) {
    return (index * MAX_GPU_INSTANCES + gi) * MAX_COMPUTE_INSTANCES + ci;
}

void *gpu_handle(int index) { return &gpu_cells[index]; }
void *mig_handle(const reference *r) { return &mig_cells[slice_cell(r->index, r->gi, r->ci)]; }
void *gpu_instance_handle(int index, int gi) { return &gpu_instance_cells[index * MAX_GPU_INSTANCES + gi]; }
void *compute_instance_handle(int index, int gi, int ci) {
    return &compute_instance_cells[slice_cell(index, gi, ci)];
}

/* Position of a handle in a table, or -1. */
static long cell_in(const void *handle, const char *table, size_t size) {
    const char *p = handle;
    return p >= table && p < table + size ? p - table : -1;
}

static nvml_return refer(reference *r, int index, int gi, int ci) {
    if (index >= host.gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
    gpu *g = &host.gpus[index];
    *r = (reference){g, index, gi, ci};
    if (g->lost) return NVML_ERROR_GPU_IS_LOST;
    if (gi >= 0 && !g->instances[gi].used) return NVML_ERROR_INVALID_ARGUMENT;
    if (ci >= 0 && !g->instances[gi].compute[ci].used) return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

static nvml_return refer_to_slice(reference *r, long cell) {
    if (cell < 0) return NVML_ERROR_INVALID_ARGUMENT;
    int gi = (int)(cell / MAX_COMPUTE_INSTANCES);
    return refer(r, gi / MAX_GPU_INSTANCES, gi % MAX_GPU_INSTANCES, (int)(cell % MAX_COMPUTE_INSTANCES));
}

nvml_return any_device(void *handle, reference *r) {
    long cell = cell_in(handle, gpu_cells, sizeof gpu_cells);
    if (cell >= 0) return refer(r, (int)cell, -1, -1);
    return refer_to_slice(r, cell_in(handle, mig_cells, sizeof mig_cells));
}

nvml_return physical_gpu(void *handle, reference *r) {
    nvml_return result = any_device(handle, r);
    return !result && is_mig_device(r) ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvml_return mig_capable_gpu(void *handle, reference *r) {
    nvml_return result = physical_gpu(handle, r);
    return !result && !r->g->model->units ? NVML_ERROR_NOT_SUPPORTED : result;
}

nvml_return mig_device(void *handle, reference *r, nvml_return otherwise) {
    nvml_return result = any_device(handle, r);
    return !result && !is_mig_device(r) ? otherwise : result;
}

nvml_return gpu_instance_of(void *handle, reference *r) {
    long cell = cell_in(handle, gpu_instance_cells, sizeof gpu_instance_cells);
    if (cell < 0) return NVML_ERROR_INVALID_ARGUMENT;
    return refer(r, (int)(cell / MAX_GPU_INSTANCES), (int)(cell % MAX_GPU_INSTANCES), -1);
}

nvml_return compute_instance_of(void *handle, reference *r) {
    return refer_to_slice(r, cell_in(handle, compute_instance_cells, sizeof compute_instance_cells));
}

int is_mig_device(const reference *r) { return r->ci >= 0; }

gpu_instance *instance_of(const reference *r) { return &r->g->instances[r->gi]; }

const profile *profile_of(const reference *r) {
    return profile_by_id(r->g->model, instance_of(r)->profile_id);
}

int next_mig_device(reference *r) {
    int gi = r->gi < 0 ? 0 : r->gi;
    int ci = r->ci + 1;
    for (; gi < MAX_GPU_INSTANCES; gi++, ci = 0)
        for (; ci < MAX_COMPUTE_INSTANCES; ci++) {
            const gpu_instance *instance = &r->g->instances[gi];
            if (!instance->used || !instance->compute[ci].used || !nodes_slice_visible(r->g, gi, ci)) continue;
            r->gi = gi;
            r->ci = ci;
            return 1;
        }
    return 0;
}

void slice_name(const reference *r, char *out, size_t size) {
    const profile *p = profile_of(r);
    int slices = instance_of(r)->compute[r->ci].slices;
    if (slices == p->slices)
        snprintf(out, size, "%s", p->name);
    else
        snprintf(out, size, "%dc.%s", slices, p->name);
}

/* Two FNV-1a hashes over the GPU's UUID, mixed with the ids; version nibble 5 (name-based), as the driver's are. */
void mig_uuid(const reference *r, char *out, size_t size) {
    uint64_t h[2] = {14695981039346656037ull, 1099511628211ull};
    for (int k = 0; k < 2; k++) {
        for (const char *p = r->g->uuid; *p; p++) h[k] = (h[k] ^ (unsigned char)*p) * 1099511628211ull;
        h[k] ^= (uint64_t)(r->gi * 131 + r->ci * 7 + k * 977 + 1) * 0x9E3779B97F4A7C15ull;
        h[k] ^= h[k] >> 29;
        h[k] *= 0xBF58476D1CE4E5B9ull;
        h[k] ^= h[k] >> 32;
    }
    snprintf(out, size, "MIG-%08x-%04x-5%03x-%04x-%012llx", (unsigned)(h[0] >> 32),
             (unsigned)(h[0] >> 16) & 0xffff, (unsigned)h[0] & 0xfff, ((unsigned)(h[1] >> 48) & 0x3fff) | 0x8000,
             (unsigned long long)(h[1] & 0xffffffffffffull));
}
