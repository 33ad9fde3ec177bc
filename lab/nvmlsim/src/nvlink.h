/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NVMLSIM_NVLINK_H
#define NVMLSIM_NVLINK_H

#include "handles.h"

/* Speed of a link in MB/s, 0 for one that is down; its CRC or its other errors. NOT_SUPPORTED where there is no such
 * link or counter. */
nvml_return nvlink_speed(const gpu *g, uint32_t link, uint64_t *out);
nvml_return nvlink_errors(const gpu *g, uint32_t link, int crc, uint64_t *out);

#endif
