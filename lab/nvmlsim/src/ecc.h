/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NVMLSIM_ECC_H
#define NVMLSIM_ECC_H

#include "handles.h"

/* Errors of a kind (NVML_MEMORY_ERROR_TYPE_...) in a counter (NVML_VOLATILE_ECC or NVML_AGGREGATE_ECC). */
uint64_t dram_errors(const gpu *g, uint32_t type, uint32_t counter);
uint64_t sram_errors(const gpu *g, uint32_t type, uint32_t counter);

/* NVML_SUCCESS, or NOT_SUPPORTED where the model, or its present MIG layout, has no such thing. */
nvml_return row_remapper(const gpu *g);
nvml_return page_retirement(const gpu *g);

#endif
