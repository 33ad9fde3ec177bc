/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Geometry of the simulated models: one entry each.
 *
 * Sources: the tables of NVIDIA's MIG user guide, NVIDIA/mig-parted's default configuration (names, counts) and
 * published `nvidia-smi mig -lgip/-lgipp` listings from A30 (R535), A100 and H100. The fill order comes from the
 * guide's Example 2 (A100) and is inferred for the others; so is the budget of media engines: what the whole-GPU
 * profile has, shared by all instances, reproduces every published maximum count.
 *
 * This table stays inside the simulator. The product's planner learns geometry through NVML; a shared table would
 * make its tests circular. */
#include "models.h"

#include <stdio.h>
#include <string.h>

#include "abi.h"

#define EIGHTHS      {0, 1, 2, 3, 4, 5, 6, END}, {6, 4, 5, 0, 1, 2, 3, END}
#define PAIRS        {0, 2, 4, 6, END}, {4, 0, 2, 6, END}
#define PAIRS_OF_2G  {0, 2, 4, END}, {4, 0, 2, END}
#define HALVES       {0, 4, END}, {4, 0, END}
#define WHOLE        {0, END}, {0, END}
#define A30_QUARTERS {0, 1, 2, 3, END}, {0, 1, 2, 3, END}
#define A30_HALVES   {0, 2, END}, {0, 2, END}

/* columns of a profile: index, id, name, slices, count, multiprocessors, copy, decoder, encoder, jpeg, ofa, MiB,
 * units, starts, fill order */
static const model MODELS[] = {
    {.key = "a30", .name = "NVIDIA A30", .architecture = NVML_DEVICE_ARCH_AMPERE, .mode_is_stored = 1,
     .units = 4, .max_instances = 4, .decoder = 4, .jpeg = 1, .ofa = 1,
     .device_id = 0x20B710DE, .compute_capability = {8, 0}, .mib = 24576, .profiles = {
        {0, 14, "1g.6gb",     1, 4, 14, 1, 1, 0, 0, 0, 5952, 1, A30_QUARTERS},
        {7, 21, "1g.6gb+me",  1, 1, 14, 1, 1, 0, 1, 1, 5952, 1, A30_QUARTERS},
        {1, 5,  "2g.12gb",    2, 2, 28, 2, 2, 0, 0, 0, 11968, 2, A30_HALVES},
        {8, 6,  "2g.12gb+me", 2, 1, 28, 2, 2, 0, 1, 1, 11968, 2, A30_HALVES},
        {3, 0,  "4g.24gb",    4, 1, 56, 4, 4, 0, 1, 1, 24000, 4, WHOLE},
        {.index = END}}},
    {.key = "a100-80gb", .name = "NVIDIA A100-SXM4-80GB", .architecture = NVML_DEVICE_ARCH_AMPERE,
     .mode_is_stored = 1, .units = 8, .max_instances = 7, .decoder = 5, .jpeg = 1, .ofa = 1,
     .device_id = 0x20B210DE, .compute_capability = {8, 0}, .mib = 81920, .profiles = {
        {0, 19, "1g.10gb",    1, 7, 14, 1, 0, 0, 0, 0, 9728, 1, EIGHTHS},
        {7, 20, "1g.10gb+me", 1, 1, 14, 1, 1, 0, 1, 1, 9728, 1, EIGHTHS},
        {9, 15, "1g.20gb",    1, 4, 14, 1, 1, 0, 0, 0, 19968, 2, PAIRS},
        {1, 14, "2g.20gb",    2, 3, 28, 2, 1, 0, 0, 0, 19968, 2, PAIRS_OF_2G},
        {2, 9,  "3g.40gb",    3, 2, 42, 3, 2, 0, 0, 0, 40192, 4, HALVES},
        {3, 5,  "4g.40gb",    4, 1, 56, 4, 2, 0, 0, 0, 40192, 4, WHOLE},
        {4, 0,  "7g.80gb",    7, 1, 98, 7, 5, 0, 1, 1, 81152, 8, WHOLE},
        {.index = END}}},
    {.key = "h100-80gb", .name = "NVIDIA H100 80GB HBM3", .architecture = NVML_DEVICE_ARCH_HOPPER,
     .units = 8, .max_instances = 7, .decoder = 7, .jpeg = 7, .ofa = 1,
     .device_id = 0x233010DE, .compute_capability = {9, 0}, .mib = 81559, .profiles = {
        {0, 19, "1g.10gb",    1, 7, 16, 1, 1, 0, 1, 0, 9856, 1, EIGHTHS},
        {7, 20, "1g.10gb+me", 1, 1, 16, 1, 1, 0, 1, 1, 9856, 1, EIGHTHS},
        {9, 15, "1g.20gb",    1, 4, 26, 1, 1, 0, 1, 0, 20096, 2, PAIRS},
        {1, 14, "2g.20gb",    2, 3, 32, 2, 2, 0, 2, 0, 20096, 2, PAIRS_OF_2G},
        {2, 9,  "3g.40gb",    3, 2, 60, 3, 3, 0, 3, 0, 40448, 4, HALVES},
        {3, 5,  "4g.40gb",    4, 1, 64, 4, 4, 0, 4, 0, 40448, 4, WHOLE},
        {4, 0,  "7g.80gb",    7, 1, 132, 8, 7, 0, 7, 1, 81152, 8, WHOLE},
        {.index = END}}},
    {.key = "t4", .name = "Tesla T4", .architecture = NVML_DEVICE_ARCH_TURING,
     .device_id = 0x1EB810DE, .compute_capability = {7, 5}, .mib = 15360, .profiles = {{.index = END}}},
};
#define MODEL_COUNT (sizeof MODELS / sizeof *MODELS)

const model *model_by_key(const char *key) {
    for (unsigned i = 0; i < MODEL_COUNT; i++)
        if (!strcmp(MODELS[i].key, key)) return &MODELS[i];
    return NULL;
}

const profile *profile_by_id(const model *m, int id) {
    for (const profile *p = m->profiles; p->index != END; p++)
        if (p->id == id) return p;
    return NULL;
}

const profile *profile_by_index(const model *m, int index) {
    for (const profile *p = m->profiles; p->index != END; p++)
        if (p->index == index) return p;
    return NULL;
}

void model_keys(char *out, unsigned size) {
    unsigned used = 0;
    for (unsigned i = 0; i < MODEL_COUNT && used < size; i++)
        used += snprintf(out + used, size - used, "%s%s", i ? ", " : "", MODELS[i].key);
}
