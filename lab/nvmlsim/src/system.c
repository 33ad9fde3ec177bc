/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The library and the driver. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "nodes.h"
#include "system.h"

static nvml_return initialise(const char *name) {
    nvml_return result = call_begin(name, READ);
    if (!result) result = nodes_driver();
    if (!result && strcmp(host.driver, host.kernel_driver)) result = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    if (!result) init_count++;
    return call_end(result);
}

API nvml_return nvmlInitWithFlags(uint32_t flags) {
    (void)flags;
    return initialise(__func__);
}
API nvml_return nvmlInit_v2(void) { return initialise(__func__); }
API nvml_return nvmlInit(void) { return initialise(__func__); }

/* Succeeds also when the driver is gone meanwhile. */
API nvml_return nvmlShutdown(void) {
    nvml_return result = call_begin(__func__, READ);
    if (init_count) {
        init_count--;
        result = NVML_SUCCESS;
    }
    return call_end(result);
}

API const char *nvmlErrorString(nvml_return result) {
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_INSUFFICIENT_POWER: return "Insufficient External Power";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_IRQ_ISSUE: return "Interrupt Request Issue";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
    case NVML_ERROR_CORRUPTED_INFOROM: return "Corrupted infoROM";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_OPERATING_SYSTEM: return "The operating system has blocked the request.";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "RM has detected an NVML/RM version mismatch.";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_MEMORY: return "Insufficient Memory";
    case NVML_ERROR_NO_DATA: return "No data";
    case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    case NVML_ERROR_UNKNOWN: break;
    }
    return "Unknown Error";
}

NVML_CALL(READ, nvmlSystemGetDriverVersion, (char *out, uint32_t size), (out, size)) {
    return copy_text(host.driver, out, size);
}

/* NVML's version is the CUDA major version followed by the driver's version. */
NVML_CALL(READ, nvmlSystemGetNVMLVersion, (char *out, uint32_t size), (out, size)) {
    char text[64];
    snprintf(text, sizeof text, "%d.%s", host.cuda / 1000, host.driver);
    return copy_text(text, out, size);
}

NVML_CALL(READ, nvmlSystemGetCudaDriverVersion_v2, (int *version), (version)) {
    if (!version) return NVML_ERROR_INVALID_ARGUMENT;
    *version = host.cuda;
    return NVML_SUCCESS;
}
NVML_ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2)

nvml_return process_name(uint32_t pid, char *out, uint32_t size) {
    char path[64], name[256] = "";
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file) return NVML_ERROR_NOT_FOUND;
    size_t length = fread(name, 1, sizeof name - 1, file); /* arguments end with NUL: the first one is the name */
    fclose(file);
    if (!length) return NVML_ERROR_NOT_FOUND;
    snprintf(out, size, "%s", name);
    return NVML_SUCCESS;
}

NVML_CALL(READ, nvmlSystemGetProcessName, (uint32_t pid, char *out, uint32_t size), (pid, out, size)) {
    return out && size ? process_name(pid, out, size) : NVML_ERROR_INVALID_ARGUMENT;
}
