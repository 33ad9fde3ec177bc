/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPU instances: profiles, placements, capacity, life cycle. */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "handles.h"

/* ---- capacity ---- */

/* Media engines are one budget for all instances. */
static int engines_suffice(const gpu *g, const profile *p) {
    int decoder = p->decoder, encoder = p->encoder, jpeg = p->jpeg, ofa = p->ofa;
    for (int i = 0; i < MAX_GPU_INSTANCES; i++) {
        if (!g->instances[i].used) continue;
        const profile *q = profile_by_id(g->model, g->instances[i].profile_id);
        decoder += q->decoder;
        encoder += q->encoder;
        jpeg += q->jpeg;
        ofa += q->ofa;
    }
    const model *m = g->model;
    return decoder <= m->decoder && encoder <= m->encoder && jpeg <= m->jpeg && ofa <= m->ofa;
}

static int units_are_free(const gpu *g, int start, int units) {
    for (int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const gpu_instance *gi = &g->instances[i];
        if (gi->used && start < gi->start + gi->units && gi->start < start + units) return 0;
    }
    return 1;
}

static int instances_of(const gpu *g, int profile_id) {
    int count = 0;
    for (int i = 0; i < MAX_GPU_INSTANCES; i++)
        count += g->instances[i].used && g->instances[i].profile_id == profile_id;
    return count;
}

static int fits(const gpu *g, const profile *p, int start) {
    return instances_of(g, p->id) < p->count && engines_suffice(g, p) && units_are_free(g, start, p->units);
}

static int first_fit(const gpu *g, const profile *p, const int *starts) {
    for (; *starts != END; starts++)
        if (fits(g, p, *starts)) return *starts;
    return END;
}

static int lowest_free_id(const gpu *g) {
    int i = 0;
    while (i < MAX_GPU_INSTANCES && g->instances[i].used) i++;
    return i;
}

/* Ids look positional in listings: the whole GPU 0, halves 1-2, quarters 3-6, eighths 7-14. Inferred: one listing swaps
 * the halves. */
static int new_id(const gpu *g, const profile *p, int start) {
    int parts = g->model->units / p->units;
    int id = start / p->units + (parts >= 8 ? 7 : parts >= 4 ? 3 : parts >= 2 ? 1 : 0);
    return id < MAX_GPU_INSTANCES && !g->instances[id].used ? id : lowest_free_id(g);
}

static int remaining(const gpu *now, const profile *p) {
    gpu g = *now;
    int count = 0, start;
    while ((start = first_fit(&g, p, p->starts)) != END && lowest_free_id(&g) < MAX_GPU_INSTANCES) {
        g.instances[lowest_free_id(&g)] =
            (gpu_instance){.used = 1, .profile_id = p->id, .start = start, .units = p->units};
        count++;
    }
    return count;
}

/* ---- profiles ---- */

static nvml_return fill_v1(const profile *p, gpu_instance_profile_v1 *out) {
    *out = (gpu_instance_profile_v1){p->id, 0, p->slices, p->count, p->multiprocessors, p->copy,
                                     p->decoder, p->encoder, p->jpeg, p->ofa, p->mib};
    return NVML_SUCCESS;
}

static nvml_return fill_versioned(const profile *p, void *out) {
    uint32_t version = *(uint32_t *)out;
    if (version == VERSION_WORD(gpu_instance_profile_v2, 2)) {
        gpu_instance_profile_v2 *v2 = out;
        *v2 = (gpu_instance_profile_v2){version, p->id, 0, p->slices, p->count, p->multiprocessors, p->copy,
                                        p->decoder, p->encoder, p->jpeg, p->ofa, p->mib, ""};
        snprintf(v2->name, sizeof v2->name, "MIG %s", p->name);
        return NVML_SUCCESS;
    }
    if (version == VERSION_WORD(gpu_instance_profile_v3, 3)) {
        gpu_instance_profile_v3 *v3 = out;
        uint32_t capabilities = strstr(p->name, "+gfx") ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0;
        *v3 = (gpu_instance_profile_v3){version, p->id, p->slices, p->count, p->multiprocessors, p->copy,
                                        p->decoder, p->encoder, p->jpeg, p->ofa, p->mib, "", capabilities};
        snprintf(v3->name, sizeof v3->name, "MIG %s", p->name);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

static nvml_return find_by_index(void *device, uint32_t index, const void *out, const profile **found) {
    reference r;
    nvml_return result = mig_capable_gpu(device, &r);
    if (result) return result;
    if (index >= NVML_GPU_INSTANCE_PROFILE_COUNT || !out) return NVML_ERROR_INVALID_ARGUMENT;
    *found = profile_by_index(r.g->model, (int)index);
    return *found ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_CALL(READ, nvmlDeviceGetGpuInstanceProfileInfo, (void *device, uint32_t index, gpu_instance_profile_v1 *out),
          (device, index, out)) {
    const profile *p;
    nvml_return result = find_by_index(device, index, out, &p);
    return result ? result : fill_v1(p, out);
}

NVML_CALL(READ, nvmlDeviceGetGpuInstanceProfileInfoV, (void *device, uint32_t index, void *out),
          (device, index, out)) {
    const profile *p;
    nvml_return result = find_by_index(device, index, out, &p);
    return result ? result : fill_versioned(p, out);
}

static nvml_return find_by_id(void *device, uint32_t id, reference *r, const profile **found) {
    nvml_return result = mig_capable_gpu(device, r);
    if (result) return result;
    *found = profile_by_id(r->g->model, (int)id);
    return *found ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_CALL(READ, nvmlDeviceGetGpuInstanceProfileInfoByIdV, (void *device, uint32_t id, void *out),
          (device, id, out)) {
    reference r;
    const profile *p;
    nvml_return result = find_by_id(device, id, &r, &p);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    return fill_versioned(p, out);
}

/* Answers whether MIG mode is on or off (nvml.h). */
NVML_CALL(PRIVILEGED, nvmlDeviceGetGpuInstancePossiblePlacements_v2,
          (void *device, uint32_t id, placement *out, uint32_t *count), (device, id, out, count)) {
    reference r;
    const profile *p;
    nvml_return result = find_by_id(device, id, &r, &p);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    uint32_t room = *count;
    for (*count = 0; p->starts[*count] != END; ++*count) continue;
    if (!out) return NVML_SUCCESS;
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++) out[i] = (placement){p->starts[i], p->units};
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDeviceGetGpuInstancePossiblePlacements_v2)

NVML_CALL(PRIVILEGED, nvmlDeviceGetGpuInstanceRemainingCapacity, (void *device, uint32_t id, uint32_t *count),
          (device, id, count)) {
    reference r;
    const profile *p;
    nvml_return result = find_by_id(device, id, &r, &p);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (!r.g->current) return NVML_ERROR_NOT_SUPPORTED;
    *count = remaining(r.g, p);
    return NVML_SUCCESS;
}

/* ---- life cycle ---- */

static nvml_return create(void *device, uint32_t id, const placement *place, void **out) {
    reference r;
    const profile *p;
    nvml_return result = find_by_id(device, id, &r, &p);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (!r.g->current) return NVML_ERROR_NOT_SUPPORTED;
    if (r.g->profiler) return NVML_ERROR_IN_USE;
    int start = END;
    if (place) {
        for (const int *s = p->starts; *s != END; s++)
            if (*s == (int)place->start && p->units == (int)place->size) start = *s;
        if (start == END) return NVML_ERROR_INVALID_ARGUMENT;
        if (!fits(r.g, p, start)) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    } else {
        start = first_fit(r.g, p, p->fill_order);
        if (start == END) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    int gi = new_id(r.g, p, start);
    if (gi >= MAX_GPU_INSTANCES) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    r.g->instances[gi] = (gpu_instance){.used = 1, .profile_id = p->id, .start = start, .units = p->units};
    *out = gpu_instance_handle(r.index, gi);
    return NVML_SUCCESS;
}

NVML_CALL(WRITE, nvmlDeviceCreateGpuInstance, (void *device, uint32_t id, void **out), (device, id, out)) {
    return create(device, id, NULL, out);
}

NVML_CALL(WRITE, nvmlDeviceCreateGpuInstanceWithPlacement,
          (void *device, uint32_t id, const placement *place, void **out), (device, id, place, out)) {
    return place ? create(device, id, place, out) : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_CALL(WRITE, nvmlGpuInstanceDestroy, (void *handle), (handle)) {
    reference r;
    nvml_return result = gpu_instance_of(handle, &r);
    if (result) return result;
    gpu_instance *gi = instance_of(&r);
    for (int c = 0; c < MAX_COMPUTE_INSTANCES; c++)
        if (gi->compute[c].used) return NVML_ERROR_IN_USE;
    memset(gi, 0, sizeof *gi);
    return NVML_SUCCESS;
}

/* ---- listing ---- */

NVML_CALL(PRIVILEGED, nvmlDeviceGetGpuInstances, (void *device, uint32_t id, void **out, uint32_t *count),
          (device, id, out, count)) {
    reference r;
    const profile *p;
    nvml_return result = find_by_id(device, id, &r, &p);
    if (result || !out || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (!r.g->current) return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (int i = 0; i < MAX_GPU_INSTANCES; i++)
        if (r.g->instances[i].used && r.g->instances[i].profile_id == p->id)
            out[(*count)++] = gpu_instance_handle(r.index, i);
    return NVML_SUCCESS;
}

NVML_CALL(PRIVILEGED, nvmlDeviceGetGpuInstanceById, (void *device, uint32_t id, void **out), (device, id, out)) {
    reference r;
    nvml_return result = mig_capable_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (!r.g->current) return NVML_ERROR_NOT_SUPPORTED;
    if (id >= MAX_GPU_INSTANCES || !r.g->instances[id].used) return NVML_ERROR_NOT_FOUND;
    *out = gpu_instance_handle(r.index, (int)id);
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlGpuInstanceGetInfo, (void *handle, gpu_instance_info *out), (handle, out)) {
    reference r;
    nvml_return result = gpu_instance_of(handle, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const gpu_instance *gi = instance_of(&r);
    *out = (gpu_instance_info){gpu_handle(r.index), r.gi, gi->profile_id, {gi->start, gi->units}};
    return NVML_SUCCESS;
}
