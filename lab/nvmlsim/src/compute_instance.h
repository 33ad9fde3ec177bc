/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NVMLSIM_COMPUTE_INSTANCE_H
#define NVMLSIM_COMPUTE_INSTANCE_H

#include "models.h"

/* Multiprocessors of a compute instance of this many slices in a GPU instance of profile p. */
int compute_multiprocessors(const profile *p, int slices);

#endif
