/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events: Xids, which simgpu puts into the state. A set belongs to its process, as on a real host. */
#include <time.h>

#include "call.h"
#include "handles.h"

#define MAX_SETS 32
#define POLL_MS  10
#define NOBODY   0xFFFFFFFF

static struct {
    int used, seen; /* number of the last event that this set has delivered or that happened before */
    int registered[MAX_GPUS];
} sets[MAX_SETS];

static int set_index(const void *set) {
    for (int i = 0; i < MAX_SETS; i++)
        if (set == &sets[i] && sets[i].used) return i;
    return -1;
}

static int last_event(void) { return host.event_count ? host.events[host.event_count - 1].number : 0; }

NVML_CALL(READ, nvmlEventSetCreate, (void **out), (out)) {
    int i = 0;
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    while (i < MAX_SETS && sets[i].used) i++;
    if (i == MAX_SETS) return NVML_ERROR_INSUFFICIENT_RESOURCES;
    sets[i] = (__typeof__(*sets)){.used = 1, .seen = last_event()};
    *out = &sets[i];
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlEventSetFree, (void *set), (set)) {
    int i = set_index(set);
    if (i < 0) return NVML_ERROR_INVALID_ARGUMENT;
    sets[i].used = 0;
    return NVML_SUCCESS;
}

NVML_GETTER(nvmlDeviceGetSupportedEventTypes, uint64_t, physical_gpu, NVML_EVENT_TYPE_XID)

/* Events from before the registration are not recorded (nvml.h). */
NVML_CALL(READ, nvmlDeviceRegisterEvents, (void *device, uint64_t types, void *set), (device, types, set)) {
    reference r;
    nvml_return result = physical_gpu(device, &r);
    int i = set_index(set);
    if (result || i < 0) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~(uint64_t)NVML_EVENT_TYPE_XID) return NVML_ERROR_NOT_SUPPORTED;
    int first = 1;
    for (int n = 0; n < MAX_GPUS; n++) first &= !sets[i].registered[n];
    if (first) sets[i].seen = last_event();
    sets[i].registered[r.index] = types != 0;
    return NVML_SUCCESS;
}

static const event *next_event(int i) {
    for (int n = 0; n < host.event_count; n++) {
        const event *e = &host.events[n];
        if (e->number <= sets[i].seen) continue;
        sets[i].seen = e->number;
        if (sets[i].registered[e->gpu]) return e;
    }
    return NULL;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static nvml_return wait_for_event(void *set, event_data *out, uint32_t milliseconds) {
    int64_t end = now_ms() + milliseconds;
    int i = set_index(set);
    if (i < 0 || !out) return NVML_ERROR_INVALID_ARGUMENT;
    for (;;) {
        if (last_event() < sets[i].seen) sets[i].seen = 0; /* a reboot began to count anew */
        const event *e = next_event(i);
        if (e) {
            *out = (event_data){gpu_handle(e->gpu), NVML_EVENT_TYPE_XID, e->xid,
                                e->gpu_instance < 0 ? NOBODY : (uint32_t)e->gpu_instance,
                                e->compute_instance < 0 ? NOBODY : (uint32_t)e->compute_instance};
            return NVML_SUCCESS;
        }
        int64_t left = end - now_ms();
        if (left <= 0) return NVML_ERROR_TIMEOUT;
        nvml_return result = call_pause(left < POLL_MS ? (unsigned)left : POLL_MS);
        if (result) return result;
    }
}

/* Version 1 lacks the two instances at the end of the struct. */
NVML_CALL(READ, nvmlEventSetWait, (void *set, void *out, uint32_t milliseconds), (set, out, milliseconds)) {
    event_data found;
    nvml_return result = out ? wait_for_event(set, &found, milliseconds) : NVML_ERROR_INVALID_ARGUMENT;
    if (!result) __builtin_memcpy(out, &found, offsetof(event_data, gpu_instance));
    return result;
}

NVML_CALL(READ, nvmlEventSetWait_v2, (void *set, event_data *out, uint32_t milliseconds), (set, out, milliseconds)) {
    return wait_for_event(set, out, milliseconds);
}
