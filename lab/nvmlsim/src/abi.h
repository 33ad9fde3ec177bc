/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVML's binary interface as far as the simulator implements it: return codes, struct layouts, version words.
 * Source: the public header nvml.h (names below are its names; the layouts are compared with the ones in the
 * nvidia-ml-py binding by a unit test). Callers pass struct sizes inside version words, hence the assertions. */
#ifndef NVMLSIM_ABI_H
#define NVMLSIM_ABI_H

#include <stdint.h>

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999
} nvml_return;

enum {
    NVML_DEVICE_ARCH_VOLTA = 5,
    NVML_DEVICE_ARCH_TURING = 6,
    NVML_DEVICE_ARCH_AMPERE = 7,
    NVML_DEVICE_ARCH_HOPPER = 9,
    NVML_DEVICE_ARCH_BLACKWELL = 10
};
enum { NVML_BRAND_TESLA = 2, NVML_BRAND_NVIDIA = 14 };
enum { NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 = 9, NVML_GPU_INSTANCE_PROFILE_COUNT = 18 };
enum { NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 = 7, NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 9 };
enum { NVML_GPU_INSTANCE_PROFILE_CAPS_GFX = 2 };
enum { NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 };
enum {
    NVML_MEMORY_LOCATION_L2_CACHE = 1,
    NVML_MEMORY_LOCATION_DRAM = 2,
    NVML_MEMORY_LOCATION_SRAM = 7,
    NVML_MEMORY_LOCATION_COUNT = 8
};
enum { NVML_PAGE_RETIREMENT_CAUSE_SINGLE_BIT = 0, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT = 1 };
enum {
    NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
    NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
    NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3
};
enum { NVML_POWER_SCOPE_GPU = 0 };
enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum { NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1, NVML_COMPUTEMODE_COUNT = 4 };
enum { NVML_CLOCKS_EVENT_REASON_GPU_IDLE = 1 };
enum { NVML_NVLINK_DEVICE_TYPE_GPU = 0, NVML_NVLINK_DEVICE_TYPE_SWITCH = 2 };
enum { NVML_AFFINITY_SCOPE_NODE = 0, NVML_AFFINITY_SCOPE_SOCKET = 1 };
enum { NVML_NVLINK_ERROR_DL_CRC_FLIT = 2, NVML_NVLINK_ERROR_COUNT = 5 };
enum { NVML_GPU_FABRIC_STATE_NOT_SUPPORTED = 0, NVML_GPU_FABRIC_STATE_COMPLETED = 3 };
enum {
    NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED = 0,
    NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY = 1,
    NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY = 2
};
enum { NVML_VALUE_TYPE_UNSIGNED_INT = 1, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3, NVML_VALUE_TYPE_SIGNED_INT = 5 };
enum { NVML_EVENT_TYPE_XID = 8 };

typedef struct { uint32_t start, size; } placement;

typedef struct {
    uint32_t id, is_p2p_supported, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    uint64_t memory_mib;
} gpu_instance_profile_v1;
typedef struct {
    uint32_t version, id, is_p2p_supported, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    uint64_t memory_mib;
    char name[96];
} gpu_instance_profile_v2;
typedef struct {
    uint32_t version, id, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    uint64_t memory_mib;
    char name[96];
    uint32_t capabilities;
} gpu_instance_profile_v3;
typedef struct { void *device; uint32_t id, profile; placement place; } gpu_instance_info;

typedef struct {
    uint32_t id, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
} compute_instance_profile_v1;
typedef struct {
    uint32_t version, id, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    char name[96];
} compute_instance_profile_v2;
typedef struct {
    uint32_t version, id, slices, instances, multiprocessors, copy, decoder, encoder, jpeg, ofa;
    char name[96];
    uint32_t capabilities;
} compute_instance_profile_v3;
typedef struct { void *device, *gpu_instance; uint32_t id, profile; placement place; } compute_instance_info;

typedef struct {
    uint32_t multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_instance_slices, compute_instance_slices;
    uint64_t memory_mib;
} device_attributes;
typedef struct {
    char bus_id_legacy[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;
typedef struct {
    uint32_t version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
} pci_info_ext;
typedef struct { uint64_t total, free, used; } memory_v1;
typedef struct { uint32_t version; uint64_t total, reserved, free, used; } memory_v2;
typedef struct { uint32_t pid; uint64_t memory; uint32_t gpu_instance, compute_instance; } process_info;
typedef struct { uint32_t pid; uint64_t memory; } process_info_v1;
typedef struct { uint32_t gpu, memory; } utilization;

typedef struct { uint32_t version, sensor; int32_t celsius; } temperature_v1;
typedef struct { uint32_t version; uint8_t scope; uint32_t mw; } power_value_v2;
typedef struct { uint32_t version; int32_t celsius; } margin_temperature_v1;
typedef struct { uint32_t max, high, partial, low, none; } row_remapper_histogram;
typedef struct {
    uint32_t version;
    uint64_t aggregate_parity, aggregate_sec_ded, aggregate_corrected;
    uint64_t volatile_parity, volatile_sec_ded, volatile_corrected;
    uint64_t aggregate_l2, aggregate_sm, aggregate_pcie, aggregate_microcontroller, aggregate_other;
    uint32_t threshold_exceeded;
} sram_ecc_status_v1;
typedef struct { unsigned char cluster[16]; int32_t status; uint32_t clique, state; } fabric_info_v1;
typedef struct {
    uint32_t version;
    unsigned char cluster[16];
    int32_t status;
    uint32_t clique, state, health_mask;
} fabric_info_v2;
typedef struct { fabric_info_v2 v2; unsigned char summary; } fabric_info_v3;
typedef union { uint32_t u32; uint64_t u64; } value;
typedef struct {
    uint32_t id, scope;
    int64_t timestamp, latency;
    uint32_t type;
    int32_t result;
    value value;
} field_value;
typedef struct { void *device; uint64_t type, data; uint32_t gpu_instance, compute_instance; } event_data;

/* version word of a versioned struct: its size in the low bytes, the version of its layout in the top byte */
#define VERSION_WORD(type, version) ((uint32_t)(sizeof(type) | (version) << 24))

#define SIZE_IS(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
SIZE_IS(gpu_instance_profile_v1, 48);
SIZE_IS(gpu_instance_profile_v2, 152);
SIZE_IS(gpu_instance_profile_v3, 152);
SIZE_IS(gpu_instance_info, 24);
SIZE_IS(compute_instance_profile_v1, 36);
SIZE_IS(compute_instance_profile_v2, 136);
SIZE_IS(compute_instance_profile_v3, 140);
SIZE_IS(compute_instance_info, 32);
SIZE_IS(device_attributes, 40);
SIZE_IS(pci_info, 68);
SIZE_IS(pci_info_ext, 64);
SIZE_IS(memory_v1, 24);
SIZE_IS(memory_v2, 40);
SIZE_IS(process_info, 24);
SIZE_IS(process_info_v1, 16);
SIZE_IS(utilization, 8);
SIZE_IS(temperature_v1, 12);
SIZE_IS(power_value_v2, 12);
SIZE_IS(margin_temperature_v1, 8);
SIZE_IS(row_remapper_histogram, 20);
SIZE_IS(sram_ecc_status_v1, 104);
SIZE_IS(fabric_info_v1, 28);
SIZE_IS(fabric_info_v2, 36);
SIZE_IS(fabric_info_v3, 40);
SIZE_IS(field_value, 40);
SIZE_IS(event_data, 32);

#endif
