/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a GPU is: processors and memory that are near, and what its NVLinks lead to.
 *
 * The host has one socket, so all of its processors and node 0 are near each GPU. Inferred: a set that is too small for
 * all of them gets those that fit, as nvml.h names no error for that; NVLinks of boards whose model has a fabric lead to
 * a switch, and others to the other GPUs of the host in turn. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "handles.h"

#define SWITCH_BUS "0000:c4:00"
#define SWITCH_ID  0x22A310DE /* NVSwitch of HGX H100 */

static nvml_return fill_set(void *device, uint32_t size, unsigned long *out, long count) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out || !size) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    const long bits = 8 * sizeof *out;
    memset(out, 0, size * sizeof *out);
    for (long i = 0; i < count && i < (long)size * bits; i++) out[i / bits] |= 1UL << i % bits;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetCpuAffinity, (void *device, uint32_t size, unsigned long *out), (device, size, out)) {
    return fill_set(device, size, out, sysconf(_SC_NPROCESSORS_CONF));
}

NVML_CALL(READ, nvmlDeviceGetCpuAffinityWithinScope, (void *device, uint32_t size, unsigned long *out, uint32_t scope),
          (device, size, out, scope)) {
    if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
    return fill_set(device, size, out, sysconf(_SC_NPROCESSORS_CONF));
}

NVML_CALL(READ, nvmlDeviceGetMemoryAffinity, (void *device, uint32_t size, unsigned long *out, uint32_t scope),
          (device, size, out, scope)) {
    if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
    return fill_set(device, size, out, 1);
}

NVML_GETTER(nvmlDeviceGetNumaNodeId, uint32_t, physical_gpu, 0)

/* ---- the other end of an NVLink ---- */

/* Find what a link leads to: the index of a GPU, or END for a switch. */
static nvml_return other_end(void *device, uint32_t link, const void *out, int *end) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result) return result;
    const board *b = &r.g->model->board;
    if (!b->nvlinks) return NVML_ERROR_NOT_SUPPORTED;
    if (!out || link >= (uint32_t)b->nvlinks) return NVML_ERROR_INVALID_ARGUMENT;
    int others = host.gpu_count - 1;
    if (r.g->nvlink_down >> link & 1 || (!b->fabric && !others)) return NVML_ERROR_NOT_SUPPORTED;
    *end = b->fabric ? END : ((int)(r.g - host.gpus) + 1 + (int)link % others) % host.gpu_count;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetNvLinkRemotePciInfo_v2, (void *device, uint32_t link, pci_info *out),
          (device, link, out)) {
    int end = END;
    nvml_return result = other_end(device, link, out, &end);
    if (!result && end == END) fill_pci(SWITCH_BUS, SWITCH_ID, out);
    if (!result && end != END) fill_pci(host.gpus[end].bus, host.gpus[end].model->device_id, out);
    return result;
}
NVML_ALIAS(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDeviceGetNvLinkRemotePciInfo_v2)

NVML_CALL(READ, nvmlDeviceGetNvLinkRemoteDeviceType, (void *device, uint32_t link, uint32_t *out),
          (device, link, out)) {
    int end = END;
    nvml_return result = other_end(device, link, out, &end);
    if (!result) *out = end == END ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return result;
}
