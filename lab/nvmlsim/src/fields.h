/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The named numbers of a GPU: what the state file keeps of it, and what a test may disturb (simgpu set). */
#ifndef NVMLSIM_FIELDS_H
#define NVMLSIM_FIELDS_H

#include <stdio.h>

#include "host.h"

/* Give a GPU whose model is set the values of a healthy board that just left the factory. */
void fields_default(gpu *g);

/* Take over what a line of the state says; write what differs from the defaults. */
void fields_read(gpu *g, const char *line);
void fields_write(FILE *file, const gpu *g);

/* Disturb a GPU. Returns 0, or -1 for an unknown key or a value out of its form or range. */
int fields_set(gpu *g, const char *key, const char *value);

/* What the driver keeps of the settings of a board when it starts on it anew: nothing. */
void fields_forget_settings(gpu *g);

/* What a reset or a reboot does to a board: pending changes take effect, what the driver counts starts again. */
void fields_after_reset(gpu *g);

#endif
