/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's device nodes and its /proc tree. Only played on a host whose state names a `dev` directory. */
#ifndef NVMLSIM_NODES_H
#define NVMLSIM_NODES_H

#include "host.h"

/* Can the caller reach the driver at all (/dev/nvidiactl)? NVML_SUCCESS, NO_PERMISSION or DRIVER_NOT_LOADED. */
nvml_return nodes_driver(void);

/* May the caller open the nodes of a GPU; of a compute instance and its GPU instance; of mig/config? */
int nodes_gpu_visible(const gpu *g);
int nodes_slice_visible(const gpu *g, int gi, int ci);
int nodes_config_visible(void);

/* Bring <run>/driver, which is mounted over /proc/driver, in line with the state. Does nothing before the driver
 * has started there. Returns 0, or -1 with errno set. */
int nodes_publish(void);

/* Start the tree: make <run>/driver and publish. */
int nodes_start(void);

#endif
