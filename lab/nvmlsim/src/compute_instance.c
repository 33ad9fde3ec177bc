/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compute instances: profiles, placements, capacity, life cycle. Counts per GPU instance are the published ones (the
 * guide, A30 listings); starts within it are inferred from the counts. */
#include "compute_instance.h"

#include <stdio.h>
#include <string.h>

#include "call.h"
#include "handles.h"

#define MAX_COMPUTE_STARTS 8

/* ---- profiles ---- */

/* compute slices of the NVML compute profiles; 8c and 6c belong to no model here, nor does the second 7c */
static const int SLICES[NVML_COMPUTE_INSTANCE_PROFILE_COUNT] = {1, 2, 3, 4, 7, 0, 0, 1, 0};

/* A double-memory 1g lists number 7 (of a GH200). That it has number 0 as well, on the same slice, is inferred from
 * mig-parted's default configuration, whose all-1g.20gb works with that number. A 4g has no 3c. */
static int is_offered(const profile *p, uint32_t index) {
    if (p->index == NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2)
        return !index || index == NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1;
    if (index == NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 || !SLICES[index]) return 0;
    return SLICES[index] <= p->slices && !(SLICES[index] == 3 && p->slices == 4);
}

/* Fill in where a compute instance may start, in compute slices of the GPU instance; returns how many starts. */
static int starts_of(const profile *p, int slices, int *starts) {
    int count = 0, step = slices == 3 && p->slices > 3 ? 4 : slices;
    for (int start = 0; start + slices <= p->slices; start += step) {
        if (start && (slices == 4 || (slices == 2 && p->slices == 3))) break;
        starts[count++] = start;
    }
    return count;
}

int compute_multiprocessors(const profile *p, int slices) {
    return slices == p->slices ? p->multiprocessors : p->multiprocessors / p->slices * slices;
}

static compute_instance_profile_v1 describe(const profile *p, uint32_t index) {
    int starts[MAX_COMPUTE_STARTS], slices = SLICES[index];
    return (compute_instance_profile_v1){index, slices, starts_of(p, slices, starts),
                                         compute_multiprocessors(p, slices), p->copy, p->decoder, p->encoder,
                                         p->jpeg, p->ofa};
}

static nvml_return find(void *handle, uint32_t index, uint32_t engine, const void *out, const profile **found) {
    reference r;
    nvml_return result = gpu_instance_of(handle, &r);
    if (result) return result;
    if (index >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine || !out) return NVML_ERROR_INVALID_ARGUMENT;
    *found = profile_of(&r);
    return is_offered(*found, index) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_CALL(READ, nvmlGpuInstanceGetComputeInstanceProfileInfo,
          (void *handle, uint32_t index, uint32_t engine, compute_instance_profile_v1 *out),
          (handle, index, engine, out)) {
    const profile *p;
    nvml_return result = find(handle, index, engine, out, &p);
    if (!result) *out = describe(p, index);
    return result;
}

NVML_CALL(READ, nvmlGpuInstanceGetComputeInstanceProfileInfoV,
          (void *handle, uint32_t index, uint32_t engine, void *out), (handle, index, engine, out)) {
    const profile *p;
    nvml_return result = find(handle, index, engine, out, &p);
    if (result) return result;
    compute_instance_profile_v3 *v3 = out; /* version 2 is its first part */
    int third = v3->version == VERSION_WORD(compute_instance_profile_v3, 3);
    if (!third && v3->version != VERSION_WORD(compute_instance_profile_v2, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    compute_instance_profile_v1 v1 = describe(p, index);
    memcpy(&v3->id, &v1, sizeof v1);
    if ((int)v1.slices == p->slices)
        snprintf(v3->name, sizeof v3->name, "MIG %s", p->name);
    else
        snprintf(v3->name, sizeof v3->name, "MIG %uc.%s", v1.slices, p->name);
    if (third) v3->capabilities = 0;
    return NVML_SUCCESS;
}

/* ---- capacity ---- */

static int slices_are_free(const gpu_instance *gi, int start, int slices) {
    for (int c = 0; c < MAX_COMPUTE_INSTANCES; c++) {
        const compute_instance *ci = &gi->compute[c];
        if (ci->used && start < ci->start + ci->slices && ci->start < start + slices) return 0;
    }
    return 1;
}

/* Decode the handle and find the profile that a call with a profile id needs. */
static nvml_return find_for(void *handle, uint32_t index, reference *r, const profile **found) {
    nvml_return result = gpu_instance_of(handle, r);
    if (result) return result;
    *found = profile_of(r);
    if (index >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    return is_offered(*found, index) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_CALL(PRIVILEGED, nvmlGpuInstanceGetComputeInstancePossiblePlacements,
          (void *handle, uint32_t index, placement *out, uint32_t *count), (handle, index, out, count)) {
    reference r;
    const profile *p;
    nvml_return result = find_for(handle, index, &r, &p);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    int starts[MAX_COMPUTE_STARTS];
    uint32_t room = *count;
    *count = starts_of(p, SLICES[index], starts);
    if (!out) return NVML_SUCCESS;
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++) out[i] = (placement){starts[i], SLICES[index]};
    return NVML_SUCCESS;
}

NVML_CALL(PRIVILEGED, nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
          (void *handle, uint32_t index, uint32_t *count), (handle, index, count)) {
    reference r;
    const profile *p;
    nvml_return result = find_for(handle, index, &r, &p);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    int starts[MAX_COMPUTE_STARTS], all = starts_of(p, SLICES[index], starts);
    *count = 0;
    for (int i = 0; i < all; i++) *count += slices_are_free(instance_of(&r), starts[i], SLICES[index]);
    return NVML_SUCCESS;
}

/* ---- life cycle ---- */

static nvml_return create(void *handle, uint32_t index, const placement *place, void **out) {
    reference r;
    const profile *p;
    nvml_return result = find_for(handle, index, &r, &p);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    gpu_instance *gi = instance_of(&r);
    int slices = SLICES[index], starts[MAX_COMPUTE_STARTS], all = starts_of(p, slices, starts);
    int legal = 0, start = END, ci = 0;
    for (int i = 0; i < all && start == END; i++) {
        if (place && (starts[i] != (int)place->start || slices != (int)place->size)) continue;
        legal = 1;
        if (slices_are_free(gi, starts[i], slices)) start = starts[i];
    }
    if (!legal) return NVML_ERROR_INVALID_ARGUMENT;
    while (ci < MAX_COMPUTE_INSTANCES && gi->compute[ci].used) ci++;
    if (start == END || ci == MAX_COMPUTE_INSTANCES) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    gi->compute[ci] = (compute_instance){1, (int)index, start, slices};
    *out = compute_instance_handle(r.index, r.gi, ci);
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlGpuInstanceCreateComputeInstance, (void *handle, uint32_t index, void **out),
          (handle, index, out)) {
    return create(handle, index, NULL, out);
}

NVML_CALL(WRITE, nvmlGpuInstanceCreateComputeInstanceWithPlacement,
          (void *handle, uint32_t index, const placement *place, void **out), (handle, index, place, out)) {
    return place ? create(handle, index, place, out) : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_CALL(WRITE, nvmlComputeInstanceDestroy, (void *handle), (handle)) {
    reference r;
    nvml_return result = compute_instance_of(handle, &r);
    if (result) return result;
    for (int i = 0; i < r.g->process_count; i++) {
        const process *p = &r.g->processes[i];
        if (p->gpu_instance == r.gi && p->compute_instance == r.ci) return NVML_ERROR_IN_USE;
    }
    instance_of(&r)->compute[r.ci] = (compute_instance){0};
    return NVML_SUCCESS;
}

/* ---- listing ---- */

NVML_CALL(PRIVILEGED, nvmlGpuInstanceGetComputeInstances, (void *handle, uint32_t index, void **out, uint32_t *count),
          (handle, index, out, count)) {
    reference r;
    const profile *p;
    nvml_return result = find_for(handle, index, &r, &p);
    if (result || !out || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (int c = 0; c < MAX_COMPUTE_INSTANCES; c++) {
        const compute_instance *ci = &instance_of(&r)->compute[c];
        if (ci->used && ci->profile_index == (int)index)
            out[(*count)++] = compute_instance_handle(r.index, r.gi, c);
    }
    return NVML_SUCCESS;
}

NVML_CALL(PRIVILEGED, nvmlGpuInstanceGetComputeInstanceById, (void *handle, uint32_t id, void **out),
          (handle, id, out)) {
    reference r;
    nvml_return result = gpu_instance_of(handle, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (id >= MAX_COMPUTE_INSTANCES || !instance_of(&r)->compute[id].used) return NVML_ERROR_NOT_FOUND;
    *out = compute_instance_handle(r.index, r.gi, (int)id);
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlComputeInstanceGetInfo_v2, (void *handle, compute_instance_info *out), (handle, out)) {
    reference r;
    nvml_return result = compute_instance_of(handle, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const compute_instance *ci = &instance_of(&r)->compute[r.ci];
    *out = (compute_instance_info){gpu_handle(r.index), gpu_instance_handle(r.index, r.gi), r.ci, ci->profile_index,
                                   {ci->start, ci->slices}};
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlComputeInstanceGetInfo, nvmlComputeInstanceGetInfo_v2)
