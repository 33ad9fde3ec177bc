/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The function table that the program nvidia-smi fetches beside the public interface. What is known of it is published
 * in NVIDIA/k8s-test-infra, pkg/gpu/mocknvml/bridge/internal.go, for 580: the table's GUID, that its first word is its
 * size in bytes, the slots named below and what they pass. It holds for 535 and 550 too, but for the reset of a GPU,
 * which is not played here. A call of a slot is logged as slot<N>. */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "handles.h"
#include "system.h"

#define SLOTS 256

enum {
    DEVICE_BY_INDEX = 81,
    COMPUTE_PROCESSES = 213, /* which of the lists is whose shows in the column Type of what the program prints */
    GRAPHICS_PROCESSES = 215,
    HOST_PCIE_GENERATION = 230
};
#define BY_INDEX  0x22     /* third argument of DEVICE_BY_INDEX */
#define MAX_LIST  65536    /* a list is not longer than this */
#define A_POINTER 0x100000 /* arguments below this are numbers */

typedef struct {
    uint32_t pid;
    uint64_t memory;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_memory;
    char name[4096];
} listed_process;
SIZE_IS(listed_process, 4128);

API nvml_return nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **out);

static int is_pointer(const void *argument) { return (uintptr_t)argument >= A_POINTER; }

static void list_processes(const reference *r, uint32_t *count, listed_process *out) {
    uint32_t room = *count;
    *count = 0;
    for (int i = 0; i < r->g->process_count && *count < room; i++) {
        const process *p = &r->g->processes[i];
        if (is_mig_device(r) && (p->gpu_instance != r->gi || p->compute_instance != r->ci)) continue;
        listed_process *l = &out[(*count)++];
        *l = (listed_process){p->pid, (uint64_t)p->mib << 20, p->gpu_instance, p->compute_instance, 0, ""};
        process_name(p->pid, l->name, sizeof l->name);
    }
}

/* Any other slot of a device may have a number in its second argument. Left as it is, the program would take it for
 * the length of a list. */
static nvml_return answer(int slot, void *first, void *second, void *third) {
    reference r;
    if (any_device(first, &r) || !is_pointer(second)) return NVML_SUCCESS;
    uint32_t *number = second;
    if (slot == COMPUTE_PROCESSES && is_pointer(third) && *number <= MAX_LIST)
        list_processes(&r, number, third);
    else
        *number = slot == HOST_PCIE_GENERATION ? r.g->model->board.pcie_generation : 0;
    int known = slot == HOST_PCIE_GENERATION || (slot >= COMPUTE_PROCESSES && slot <= GRAPHICS_PROCESSES);
    return known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvml_return call_slot(int slot, void *first, void *second, void *third) {
    char name[16];
    if (slot == DEVICE_BY_INDEX && (uintptr_t)third == BY_INDEX && is_pointer(second))
        return nvmlDeviceGetHandleByIndex_v2((uint32_t)(uintptr_t)first, second);
    snprintf(name, sizeof name, "slot%d", slot);
    nvml_return result = call_begin(name, READ);
    return call_end(result ? result : answer(slot, first, second, third));
}

/* one function for each slot, as a slot is not told its number */
#define ROW(X, h) \
    X(h##0) X(h##1) X(h##2) X(h##3) X(h##4) X(h##5) X(h##6) X(h##7) \
    X(h##8) X(h##9) X(h##a) X(h##b) X(h##c) X(h##d) X(h##e) X(h##f)
#define ALL(X) \
    ROW(X, 0x0) ROW(X, 0x1) ROW(X, 0x2) ROW(X, 0x3) ROW(X, 0x4) ROW(X, 0x5) ROW(X, 0x6) ROW(X, 0x7) \
    ROW(X, 0x8) ROW(X, 0x9) ROW(X, 0xa) ROW(X, 0xb) ROW(X, 0xc) ROW(X, 0xd) ROW(X, 0xe) ROW(X, 0xf)
#define DEFINE(n) \
    static nvml_return slot_##n(void *a, void *b, void *c) { return call_slot(n, a, b, c); }
#define ADDRESS(n) (void *)slot_##n,

ALL(DEFINE)
static void *table[SLOTS] = {ALL(ADDRESS)};

API nvml_return nvmlInternalGetExportTable(const void **out, const unsigned char *guid) {
    static const unsigned char KNOWN[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
    if (!out || !guid || memcmp(guid, KNOWN, sizeof KNOWN)) return NVML_ERROR_NOT_SUPPORTED;
    table[0] = (void *)sizeof table;
    *out = table;
    return NVML_SUCCESS;
}
