/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Handles: what they refer to, and which of them the caller may see. */
#ifndef NVMLSIM_HANDLES_H
#define NVMLSIM_HANDLES_H

#include <stddef.h>

#include "abi.h"
#include "host.h"

/* What a handle names. gi and ci are -1 where they do not apply. */
typedef struct {
    gpu *g;
    int index, gi, ci; /* index: position of the GPU in the host's list */
} reference;

void *gpu_handle(int index);
void *mig_handle(const reference *r);
void *gpu_instance_handle(int index, int gi);
void *compute_instance_handle(int index, int gi, int ci);

/* Decode a handle. Each returns NVML_SUCCESS, or the error the caller gets: INVALID_ARGUMENT for what is not such a
 * handle or no longer exists, GPU_IS_LOST for a GPU that fell off the bus, NOT_SUPPORTED for one without MIG. */
nvml_return any_device(void *handle, reference *r); /* a GPU, or a MIG device (gi and ci are set) */
nvml_return physical_gpu(void *handle, reference *r);
nvml_return mig_capable_gpu(void *handle, reference *r);
nvml_return mig_device(void *handle, reference *r, nvml_return otherwise);
nvml_return gpu_instance_of(void *handle, reference *r);
nvml_return compute_instance_of(void *handle, reference *r);

/* What NVML tells of a device on the PCI bus. */
void fill_pci(const char *bus, uint32_t device_id, pci_info *out);

int is_mig_device(const reference *r);
gpu_instance *instance_of(const reference *r);
const profile *profile_of(const reference *r);

/* Step to the next MIG device of r's GPU that exists and is visible; start with gi = ci = -1. Returns 0 at the end. */
int next_mig_device(reference *r);

/* "1c.3g.40gb" for a part of a GPU instance, "3g.40gb" for all of it. */
void slice_name(const reference *r, char *out, size_t size);

/* The UUID of a compute instance: the same whenever it is created again at the same ids. */
void mig_uuid(const reference *r, char *out, size_t size);

#endif
