/* GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The calls to CUDA's driver that measurements make, with buffers in this machine's memory. It is no GPU: it
 * copies in fact, but what the kernel computes is written here in C. LIBCUDA_FAULT, "UUID KIND", lets one GPU
 * copy, send or compute wrongly, hang, or fail. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_CONTEXT = 201, ILLEGAL_ADDRESS = 700 };
enum { GPUS = 16, CHAINS = 8, STEPS = 16 };

static char *uuids[GPUS];
static int count, current = -1, begun;
static uint64_t peers; /* bit i * 8 + j: GPU i reaches GPU j */

static int fault(const char *kind) {
    const char *told = getenv("LIBCUDA_FAULT");
    if (!told || current < 0 || !uuids[current])
        return 0;
    size_t length = strlen(uuids[current]);
    return !strncmp(told, uuids[current], length) && !strcmp(told + length, kind);
}

int cuInit(unsigned flags) {
    char *visible = strdup(getenv("CUDA_VISIBLE_DEVICES")), *rest = visible, *word;
    while ((word = strsep(&rest, ",")) && count < GPUS)
        uuids[count++] = word;
    begun = 1;
    return flags ? INVALID_VALUE : 0;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "it is broken";
    return 0;
}

int cuDeviceGetCount(int *found) {
    *found = count;
    return begun ? 0 : NO_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = 2;
    return attribute == 16 && device < count ? 0 : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = (void *)(intptr_t)(device + 1);
    return device < count ? 0 : NO_DEVICE;
}

int cuCtxSetCurrent(void *context) {
    current = (int)(intptr_t)context - 1;
    if (fault(" hangs"))
        pause();
    return fault(" fails") ? ILLEGAL_ADDRESS : 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    *address = (uint64_t)(uintptr_t)malloc(size);
    return current < 0 ? INVALID_CONTEXT : *address ? 0 : OUT_OF_MEMORY;
}

int cuMemHostAlloc(void **address, size_t size, unsigned flags) {
    *address = malloc(size);
    return flags > 1 ? INVALID_VALUE : *address ? 0 : OUT_OF_MEMORY;
}

int cuMemsetD32_v2(uint64_t address, unsigned value, size_t words) {
    for (size_t word = 0; word < words; word++)
        ((uint32_t *)(uintptr_t)address)[word] = value;
    return 0;
}

static int copy(void *target, const void *source, size_t size) {
    memcpy(target, source, size);
    if (fault(" copies"))
        ((char *)target)[size / 2] ^= 1;
    return 0;
}

int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t size) {
    memcpy(target, (void *)(uintptr_t)source, size);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *target, uint64_t source, size_t size, void *stream) {
    return stream ? INVALID_VALUE : copy(target, (void *)(uintptr_t)source, size);
}

int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t size, void *stream) {
    return stream ? INVALID_VALUE : copy((void *)(uintptr_t)target, source, size);
}

int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t size, void *stream) {
    return stream ? INVALID_VALUE : copy((void *)(uintptr_t)target, (void *)(uintptr_t)source, size);
}

int cuDeviceCanAccessPeer(int *able, int device, int peer) {
    *able = 1;
    return device < count && peer < count && device != peer ? 0 : INVALID_VALUE;
}

int cuCtxEnablePeerAccess(void *context, unsigned flags) {
    peers |= 1ull << (current * 8 + (intptr_t)context - 1);
    return flags ? INVALID_VALUE : 0;
}

int cuMemcpyPeerAsync(uint64_t target, void *to, uint64_t source, void *from, size_t size, void *stream) {
    uint64_t reached = 1ull << (((intptr_t)from - 1) * 8 + (intptr_t)to - 1);
    if (stream || !(peers & reached))
        return INVALID_CONTEXT;
    copy((void *)(uintptr_t)target, (void *)(uintptr_t)source, size);
    if (fault(" sends"))
        *(char *)(uintptr_t)target ^= 1;
    return 0;
}

int cuEventCreate(void **event, unsigned flags) {
    *event = calloc(1, sizeof(struct timespec));
    return flags ? INVALID_VALUE : 0;
}

int cuEventRecord(void *event, void *stream) {
    return stream ? INVALID_VALUE : clock_gettime(CLOCK_MONOTONIC, event);
}

int cuEventSynchronize(void *event) { return event ? 0 : INVALID_VALUE; }

int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    struct timespec *from = start, *to = end;
    double passed = (to->tv_sec - from->tv_sec) * 1e3 + (to->tv_nsec - from->tv_nsec) / 1e6;
    *milliseconds = passed > 0 ? (float)passed : 1e-6f;
    return 0;
}

int cuModuleLoadData(void **module, const char *text) {
    *module = (void *)text;
    return strstr(text, ".entry chains(") ? 0 : INVALID_VALUE;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "chains") ? INVALID_VALUE : 0;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned v, unsigned w,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    float *sums = *(float **)arguments[0], a = *(float *)arguments[2], b = *(float *)arguments[3], sum = 0;
    if (!function || y * z * v * w != 1 || shared || stream || extra)
        return INVALID_VALUE;
    for (int chain = 0; chain < CHAINS; chain++) {
        float x = 1 + chain / (float)CHAINS;
        for (unsigned round = 0; round < *(unsigned *)arguments[1] * STEPS; round++)
            x = a * x + b;
        sum += x;
    }
    for (unsigned thread = 0; thread < blocks * threads; thread++)
        sums[thread] = sum;
    if (fault(" computes"))
        sums[blocks * threads / 3] += 0.5f;
    return 0;
}
