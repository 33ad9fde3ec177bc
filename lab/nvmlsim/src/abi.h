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
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999
} nvml_return;

enum { NVML_DEVICE_ARCH_TURING = 6, NVML_DEVICE_ARCH_AMPERE = 7, NVML_DEVICE_ARCH_HOPPER = 9 };
enum { NVML_BRAND_NVIDIA = 14 };
enum { NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 = 9, NVML_GPU_INSTANCE_PROFILE_COUNT = 18 };
enum { NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 = 7, NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 9 };
enum { NVML_GPU_INSTANCE_PROFILE_CAPS_GFX = 2 };
enum { NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };

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
typedef struct { uint32_t gpu, memory; } utilization;

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
SIZE_IS(utilization, 8);

#endif
