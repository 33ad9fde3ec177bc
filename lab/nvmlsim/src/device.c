/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Devices: finding them, their properties, their processes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "call.h"
#include "handles.h"
#include "nodes.h"

#define SUBSYSTEM_ID 0x134F10DE
#define INSTANCE_OVERHEAD_MIB 12 /* memory in use on an idle instance, as published listings show it */

/* ---- finding a device ---- */

/* Position in the host's list of the visible GPU number n, or -1. */
static int visible_gpu(uint32_t n) {
    for (int i = 0; i < host.gpu_count; i++)
        if (nodes_gpu_visible(&host.gpus[i]) && !n--) return i;
    return -1;
}

static uint32_t visible_gpus_before(int end) {
    uint32_t count = 0;
    for (int i = 0; i < end; i++) count += nodes_gpu_visible(&host.gpus[i]);
    return count;
}

/* nvml.h says that this counts GPUs which the caller may not use as well; in containers and in jobs whose devices are
 * confined, it is seen to count only those that can be opened. The simulator follows what is seen. */
NVML_CALL(READ, nvmlDeviceGetCount_v2, (uint32_t *count), (count)) {
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = visible_gpus_before(host.gpu_count);
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2)

static nvml_return give_gpu(int index, void **out) {
    if (host.gpus[index].lost) return NVML_ERROR_GPU_IS_LOST;
    *out = gpu_handle(index);
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetHandleByIndex_v2, (uint32_t index, void **out), (index, out)) {
    int i = visible_gpu(index);
    return i < 0 || !out ? NVML_ERROR_INVALID_ARGUMENT : give_gpu(i, out);
}
NVML_ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2)

NVML_CALL(READ, nvmlDeviceGetHandleByUUID, (const char *uuid, void **out), (uuid, out)) {
    if (!uuid || !out) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < host.gpu_count; i++) {
        if (!nodes_gpu_visible(&host.gpus[i])) continue;
        if (!strcmp(uuid, host.gpus[i].uuid)) return give_gpu(i, out);
        reference r = {&host.gpus[i], i, -1, -1};
        while (next_mig_device(&r)) {
            char found[64];
            mig_uuid(&r, found, sizeof found);
            if (strcmp(uuid, found)) continue;
            *out = mig_handle(&r);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_CALL(READ, nvmlDeviceGetHandleBySerial, (const char *serial, void **out), (serial, out)) {
    if (!serial || !out) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < host.gpu_count; i++)
        if (nodes_gpu_visible(&host.gpus[i]) && !strcmp(serial, host.gpus[i].serial)) return give_gpu(i, out);
    return NVML_ERROR_NOT_FOUND;
}

/* Bus ids come with a domain of four or eight digits: compare what follows it. */
static const char *after_domain(const char *bus) {
    const char *colon = strchr(bus, ':');
    return colon ? colon + 1 : bus;
}

NVML_CALL(READ, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **out), (bus, out)) {
    if (!bus || !out) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < host.gpu_count; i++)
        if (nodes_gpu_visible(&host.gpus[i]) && !strcasecmp(after_domain(bus), after_domain(host.gpus[i].bus)))
            return give_gpu(i, out);
    return NVML_ERROR_NOT_FOUND;
}
NVML_ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2)

NVML_CALL(READ, nvmlDeviceGetIndex, (void *device, uint32_t *index), (device, index)) {
    reference r, other;
    nvml_return result = any_device(device, &r);
    if (result || !index) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *index = 0;
    if (!is_mig_device(&r)) {
        *index = visible_gpus_before(r.index);
        return NVML_SUCCESS;
    }
    for (other = (reference){r.g, r.index, -1, -1}; next_mig_device(&other); ++*index)
        if (other.gi == r.gi && other.ci == r.ci) return NVML_SUCCESS;
    return NVML_ERROR_NOT_FOUND;
}

/* ---- properties ---- */

NVML_CALL(READ, nvmlDeviceGetName, (void *device, char *out, uint32_t size), (device, out, size)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result) return result;
    if (!is_mig_device(&r)) return copy_text(r.g->model->name, out, size);
    char slice[48], text[128];
    slice_name(&r, slice, sizeof slice);
    snprintf(text, sizeof text, "%s MIG %s", r.g->model->name, slice);
    return copy_text(text, out, size);
}

NVML_CALL(READ, nvmlDeviceGetUUID, (void *device, char *out, uint32_t size), (device, out, size)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result) return result;
    char text[64];
    if (!is_mig_device(&r)) return copy_text(r.g->uuid, out, size);
    mig_uuid(&r, text, sizeof text);
    return copy_text(text, out, size);
}

NVML_CALL(READ, nvmlDeviceGetSerial, (void *device, char *out, uint32_t size), (device, out, size)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    return result ? result : copy_text(r.g->serial, out, size);
}

NVML_CALL(READ, nvmlDeviceGetVbiosVersion, (void *device, char *out, uint32_t size), (device, out, size)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    return result ? result : copy_text("92.00.45.00.03", out, size);
}

void fill_pci(const char *bus, uint32_t device_id, pci_info *out) {
    memset(out, 0, sizeof *out);
    sscanf(bus, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    out->device_id = device_id;
    out->subsystem_id = SUBSYSTEM_ID;
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
             out->bus & 0xff, out->device & 0x1f);
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", out->domain, out->bus & 0xff,
             out->device & 0x1f);
}

NVML_CALL(READ, nvmlDeviceGetPciInfo_v3, (void *device, pci_info *out), (device, out)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    fill_pci(r.g->bus, r.g->model->device_id, out);
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo_v3)
NVML_ALIAS(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v3)

NVML_CALL(READ, nvmlDeviceGetPciInfoExt, (void *device, pci_info_ext *out), (device, out)) {
    reference r;
    pci_info info;
    nvml_return result = physical_gpu(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != VERSION_WORD(pci_info_ext, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    fill_pci(r.g->bus, r.g->model->device_id, &info);
    *out = (pci_info_ext){out->version, info.domain, info.bus, info.device, info.device_id, info.subsystem_id,
                          3, 2, ""}; /* PCI class: display controller, 3D */
    memcpy(out->bus_id, info.bus_id, sizeof out->bus_id);
    return NVML_SUCCESS;
}

static void memory_of(const reference *r, uint64_t *total, uint64_t *used) {
    uint64_t mib = r->gi >= 0 ? (uint64_t)profile_of(r)->mib : (uint64_t)r->g->model->mib;
    uint64_t taken = r->gi >= 0 ? INSTANCE_OVERHEAD_MIB : 0;
    for (int i = 0; i < r->g->process_count; i++)
        if (r->gi < 0 || r->g->processes[i].gpu_instance == r->gi) taken += r->g->processes[i].mib;
    *total = mib << 20;
    *used = taken << 20;
}

NVML_CALL(READ, nvmlDeviceGetMemoryInfo, (void *device, memory_v1 *out), (device, out)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    memory_of(&r, &out->total, &out->used);
    out->free = out->total - out->used;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetMemoryInfo_v2, (void *device, memory_v2 *out), (device, out)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != VERSION_WORD(memory_v2, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory_of(&r, &out->total, &out->used);
    out->reserved = 0;
    out->free = out->total - out->used;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetBAR1MemoryInfo, (void *device, memory_v1 *out), (device, out)) {
    reference r;
    uint64_t used;
    nvml_return result = any_device(device, &r);
    if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    memory_of(&r, &out->total, &used);
    out->free = out->total;
    out->used = 0;
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlDeviceGetCudaComputeCapability, (void *device, int *major, int *minor), (device, major, minor)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !major || !minor) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *major = r.g->model->compute_capability[0];
    *minor = r.g->model->compute_capability[1];
    return NVML_SUCCESS;
}

NVML_GETTER(nvmlDeviceGetMinorNumber, uint32_t, physical_gpu, r.g->minor)
NVML_GETTER(nvmlDeviceGetArchitecture, uint32_t, any_device, r.g->model->architecture)
NVML_GETTER(nvmlDeviceGetBrand, uint32_t, any_device,
            r.g->model->architecture < NVML_DEVICE_ARCH_AMPERE ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA)
NVML_GETTER(nvmlDeviceGetPersistenceMode, uint32_t, physical_gpu, r.g->persistence)
NVML_GETTER(nvmlDeviceGetVirtualizationMode, uint32_t, physical_gpu, r.g->passthrough)
NVML_GETTER(nvmlDeviceGetDisplayMode, uint32_t, physical_gpu, r.g->display)
NVML_GETTER(nvmlDeviceGetDisplayActive, uint32_t, physical_gpu, r.g->display)

NVML_CALL(WRITE, nvmlDeviceSetPersistenceMode, (void *device, uint32_t mode), (device, mode)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    if (result || mode > 1) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    r.g->persistence = mode;
    return NVML_SUCCESS;
}

/* ---- processes ---- */

/* Call `put` for each of the first `*count` processes of a device; `*count` is how many there are afterwards. */
static nvml_return each_process(void *device, uint32_t *count, void *out, void (*put)(void *, uint32_t, const process *)) {
    reference r;
    nvml_return result = any_device(device, &r);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    uint32_t found = 0;
    for (int i = 0; i < r.g->process_count; i++) {
        const process *p = &r.g->processes[i];
        if (is_mig_device(&r) && (p->gpu_instance != r.gi || p->compute_instance != r.ci)) continue;
        if (out && found < *count) put(out, found, p);
        found++;
    }
    int short_of_room = found > *count;
    *count = found;
    return short_of_room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static void put_process(void *out, uint32_t at, const process *p) {
    ((process_info *)out)[at] = (process_info){p->pid, (uint64_t)p->mib << 20, p->gpu_instance, p->compute_instance};
}

static void put_process_v1(void *out, uint32_t at, const process *p) {
    ((process_info_v1 *)out)[at] = (process_info_v1){p->pid, (uint64_t)p->mib << 20};
}

NVML_CALL(READ, nvmlDeviceGetComputeRunningProcesses_v3, (void *device, uint32_t *count, process_info *out),
          (device, count, out)) {
    return each_process(device, count, out, put_process);
}

/* Without the instances, as before MIG; programs that were built then call it to this day. */
NVML_CALL(READ, nvmlDeviceGetComputeRunningProcesses, (void *device, uint32_t *count, process_info_v1 *out),
          (device, count, out)) {
    return each_process(device, count, out, put_process_v1);
}
NVML_ALIAS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3)

NVML_CALL(READ, nvmlDeviceGetGraphicsRunningProcesses_v3, (void *device, uint32_t *count, process_info *out),
          (device, count, out)) {
    reference r;
    (void)out;
    nvml_return result = any_device(device, &r);
    if (result || !count) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3)
NVML_ALIAS(nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses_v3)
