/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links between GPUs: their state and errors, and the fabric that a fabric manager makes of them. */
#include "nvlink.h"

#include <string.h>

#include "call.h"

#define HEALTHY_FABRIC 0xAA /* each of the four two-bit fields of nvml.h's health mask says "false" */
#define BROKEN_ROUTES  0x9A /* "route unhealthy" says "true" */

static nvml_return find(void *device, uint32_t link, const void *out, reference *r) {
    nvml_return result = physical_gpu(device, r);
    if (result) return result;
    if (!r->g->model->board.nvlinks) return NVML_ERROR_NOT_SUPPORTED;
    return !out || link >= (uint32_t)r->g->model->board.nvlinks ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetNvLinkState, (void *device, uint32_t link, uint32_t *out), (device, link, out)) {
    reference r;
    nvml_return result = find(device, link, out, &r);
    if (!result) *out = !(r.g->nvlink_down >> link & 1);
    return result;
}

/* generation of NVLink: 2 on Volta, 3 on Ampere, 4 on Hopper, 5 on Blackwell */
NVML_CALL(READ, nvmlDeviceGetNvLinkVersion, (void *device, uint32_t link, uint32_t *out), (device, link, out)) {
    reference r;
    nvml_return result = find(device, link, out, &r);
    if (result) return result;
    switch (r.g->model->architecture) {
    case NVML_DEVICE_ARCH_VOLTA: *out = 2; break;
    case NVML_DEVICE_ARCH_AMPERE: *out = 3; break;
    case NVML_DEVICE_ARCH_HOPPER: *out = 4; break;
    default: *out = 5;
    }
    return NVML_SUCCESS;
}

nvml_return nvlink_speed(const gpu *g, uint32_t link, uint64_t *out) {
    static const struct { int architecture; uint32_t speed; } SPEEDS[] = {
        {NVML_DEVICE_ARCH_BLACKWELL, 53125}, {NVML_DEVICE_ARCH_HOPPER, 26562}, {NVML_DEVICE_ARCH_VOLTA, 25781}};
    int i = 0;
    if (link >= (uint32_t)g->model->board.nvlinks) return NVML_ERROR_NOT_SUPPORTED;
    while (SPEEDS[i].architecture > g->model->architecture) i++;
    *out = g->nvlink_down >> link & 1 ? 0 : SPEEDS[i].speed;
    return NVML_SUCCESS;
}

/* That Blackwell has these counters no more, but others, is inferred from the fields that nvml.h adds for NVLink 5. */
nvml_return nvlink_errors(const gpu *g, uint32_t link, int crc, uint64_t *out) {
    if (link >= (uint32_t)g->model->board.nvlinks || g->model->architecture >= NVML_DEVICE_ARCH_BLACKWELL)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = !link && crc ? g->nvlink_crc : 0;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetNvLinkErrorCounter, (void *device, uint32_t link, uint32_t counter, uint64_t *out),
          (device, link, counter, out)) {
    reference r;
    nvml_return result = find(device, link, out, &r);
    if (result || counter >= NVML_NVLINK_ERROR_COUNT) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    return nvlink_errors(r.g, link, counter == NVML_NVLINK_ERROR_DL_CRC_FLIT, out);
}

/* ---- fabric ---- */

static nvml_return fabric_of(void *device, fabric_info_v2 *out) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result) return result;
    if (r.g->model->architecture < NVML_DEVICE_ARCH_HOPPER) return NVML_ERROR_NOT_SUPPORTED;
    int fabric = r.g->fabric;
    memset(out, 0, sizeof *out);
    out->state = fabric == FABRIC_FAILED ? FABRIC_COMPLETED : fabric; /* the others have NVML's numbers */
    out->status = fabric == FABRIC_FAILED ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
    out->health_mask = fabric == FABRIC_COMPLETED ? HEALTHY_FABRIC : fabric == FABRIC_FAILED ? BROKEN_ROUTES : 0;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetGpuFabricInfo, (void *device, fabric_info_v1 *out), (device, out)) {
    fabric_info_v2 found;
    nvml_return result = fabric_of(device, &found);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *out = (fabric_info_v1){.status = found.status, .state = found.state};
    return NVML_SUCCESS;
}

static unsigned char summary_of(const fabric_info_v2 *info) {
    return info->health_mask == HEALTHY_FABRIC ? NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
           : info->health_mask                 ? NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY
                                               : NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED;
}

NVML_CALL(READ, nvmlDeviceGetGpuFabricInfoV, (void *device, fabric_info_v2 *out), (device, out)) {
    fabric_info_v2 found;
    nvml_return result = fabric_of(device, &found);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    int third = out->version == VERSION_WORD(fabric_info_v3, 3);
    if (!third && out->version != VERSION_WORD(fabric_info_v2, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    found.version = out->version;
    *out = found;
    if (third) ((fabric_info_v3 *)out)->summary = summary_of(&found);
    return NVML_SUCCESS;
}
