/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What distinguishes one GPU model from another. */
#ifndef NVMLSIM_MODELS_H
#define NVMLSIM_MODELS_H

#include <stdint.h>

#define END (-1)
#define MAX_PROFILES 12
#define MAX_STARTS 8

typedef struct {
    int index, id; /* index asks for the profile's properties, id creates and lists instances */
    const char *name;
    int slices, count; /* compute slices; most instances of this profile on one GPU */
    int multiprocessors, copy, decoder, encoder, jpeg, ofa, mib;
    int units; /* memory units taken: the size of the placement */
    int starts[MAX_STARTS], fill_order[MAX_STARTS]; /* legal starts; order the driver tries without a placement */
} profile;

/* What a healthy board of this model reports. */
typedef struct {
    int watts, least_watts;           /* default and lowest power limit; the highest is the default */
    int sm_mhz, memory_mhz, idle_mhz; /* highest clocks; clock of an idle GPU */
    int throttle_celsius, slowdown_celsius, shutdown_celsius, memory_celsius;
    int pcie_generation, nvlinks;
    int fabric; /* joined to others by NVSwitch, so that the fabric manager has to train it */
    int lower_memory_mhz; /* second clock of the memory; 0 = it has one only */
} board;

typedef struct {
    const char *key, *name;
    int architecture;
    const char *driver; /* oldest driver that knows it, where that is younger than the simulator's usual one */
    int cuda;           /* of that driver */
    int mode_is_stored; /* MIG mode is kept on the board, and applying it resets the GPU: Ampere only */
    int units, max_instances; /* memory units; 0 = not MIG capable */
    int decoder, encoder, jpeg, ofa; /* media engines that all instances share */
    uint32_t device_id; /* PCI device << 16 | vendor */
    int compute_capability[2];
    long mib;
    board board;
    profile profiles[MAX_PROFILES];
} model;

const model *model_by_key(const char *key);
const profile *profile_by_id(const model *m, int id);
const profile *profile_by_index(const model *m, int index);

/* Write the keys of all models, separated by ", ". */
void model_keys(char *out, unsigned size);

#endif
