/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NVMLSIM_SYSTEM_H
#define NVMLSIM_SYSTEM_H

#include "abi.h"

/* The name of a process, as its first argument; NOT_FOUND and no name if there is none. */
nvml_return process_name(uint32_t pid, char *out, uint32_t size);

#endif
