/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated models: one entry each.
 *
 * Geometry. Sources: the tables of NVIDIA's MIG user guide, NVIDIA/mig-parted's default configuration (names, counts)
 * and published `nvidia-smi mig -lgip/-lgipp` listings from A30 (R535), A100, H100, H100 NVL, GH200, H200, B200 and RTX
 * PRO 6000. The fill order comes from the guide's Example 2 (A100) and is inferred for the others; so is the budget of
 * media engines: what the whole-GPU profile has, shared by all instances, reproduces every published maximum count.
 * More that is inferred is said at the model.
 *
 * Board. Power limits and clocks are those of the data sheets. Temperature limits of T4, V100 and A100 are as published
 * `nvidia-smi -q` listings show them; the others' are inferred from these.
 *
 * H100 80GB HBM3 and H200 are as the driver 580.159.04 reported them (`reports/`), but for the order of filling and what
 * a report cannot tell of GPUs without MIG mode.
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
#define RTX_QUARTERS {0, 3, 6, 9, END}, {0, 3, 6, 9, END}
#define RTX_HALVES   {0, 6, END}, {0, 6, END}

/* what the A100, and what the H100 and later, have in common beside names and sizes */
#define A100_SHAPE \
    .architecture = NVML_DEVICE_ARCH_AMPERE, .mode_is_stored = 1, .units = 8, .max_instances = 7, \
    .decoder = 5, .jpeg = 1, .ofa = 1, .compute_capability = {8, 0}
#define H100_SHAPE \
    .architecture = NVML_DEVICE_ARCH_HOPPER, .units = 8, .max_instances = 7, \
    .decoder = 7, .jpeg = 7, .ofa = 1, .compute_capability = {9, 0}

/* columns of a board: watts, least watts, SM, memory and idle MHz; throttle, slowdown, shutdown and memory Celsius; PCIe
 * generation, NVLinks, fabric, lower memory MHz */
#define A100_BOARD(memory_mhz) .board = {400, 100, 1410, memory_mhz, 210, 85, 89, 92, 95, 4, 12, 0}
#define H100_BOARD(watts, memory_mhz, lower_memory_mhz, fabric) \
    .board = {watts, 200, 1980, memory_mhz, 345, 87, 89, 95, 95, 5, 18, fabric, lower_memory_mhz}

/* columns of a profile: index, id, name, slices, count, multiprocessors, copy, decoder, encoder, jpeg, ofa, MiB,
 * units, starts, fill order */
static const model MODELS[] = {
    {.key = "a30", .name = "NVIDIA A30", .architecture = NVML_DEVICE_ARCH_AMPERE, .mode_is_stored = 1,
     .units = 4, .max_instances = 4, .decoder = 4, .jpeg = 1, .ofa = 1,
     .device_id = 0x20B710DE, .compute_capability = {8, 0}, .mib = 24576,
     .board = {165, 100, 1440, 1215, 210, 85, 89, 92, 95, 4, 4, 0}, .profiles = {
        {0, 14, "1g.6gb",     1, 4, 14, 1, 1, 0, 0, 0, 5952, 1, A30_QUARTERS},
        {7, 21, "1g.6gb+me",  1, 1, 14, 1, 1, 0, 1, 1, 5952, 1, A30_QUARTERS},
        {1, 5,  "2g.12gb",    2, 2, 28, 2, 2, 0, 0, 0, 11968, 2, A30_HALVES},
        {8, 6,  "2g.12gb+me", 2, 1, 28, 2, 2, 0, 1, 1, 11968, 2, A30_HALVES},
        {3, 0,  "4g.24gb",    4, 1, 56, 4, 4, 0, 1, 1, 24000, 4, WHOLE},
        {.index = END}}},
    {.key = "a100-40gb", .name = "NVIDIA A100-SXM4-40GB", A100_SHAPE, .device_id = 0x20B010DE, .mib = 40960,
     A100_BOARD(1215), .profiles = {
        {0, 19, "1g.5gb",    1, 7, 14, 1, 0, 0, 0, 0, 4864, 1, EIGHTHS},
        {7, 20, "1g.5gb+me", 1, 1, 14, 1, 1, 0, 1, 1, 4864, 1, EIGHTHS},
        {9, 15, "1g.10gb",   1, 4, 14, 1, 1, 0, 0, 0, 9856, 2, PAIRS},
        {1, 14, "2g.10gb",   2, 3, 28, 2, 1, 0, 0, 0, 9856, 2, PAIRS_OF_2G},
        {2, 9,  "3g.20gb",   3, 2, 42, 3, 2, 0, 0, 0, 19968, 4, HALVES},
        {3, 5,  "4g.20gb",   4, 1, 56, 4, 2, 0, 0, 0, 19968, 4, WHOLE},
        {4, 0,  "7g.40gb",   7, 1, 98, 7, 5, 0, 1, 1, 40192, 8, WHOLE},
        {.index = END}}},
    {.key = "a100-80gb", .name = "NVIDIA A100-SXM4-80GB", A100_SHAPE, .device_id = 0x20B210DE, .mib = 81920,
     A100_BOARD(1593), .profiles = {
        {0, 19, "1g.10gb",    1, 7, 14, 1, 0, 0, 0, 0, 9728, 1, EIGHTHS},
        {7, 20, "1g.10gb+me", 1, 1, 14, 1, 1, 0, 1, 1, 9728, 1, EIGHTHS},
        {9, 15, "1g.20gb",    1, 4, 14, 1, 1, 0, 0, 0, 19968, 2, PAIRS},
        {1, 14, "2g.20gb",    2, 3, 28, 2, 1, 0, 0, 0, 19968, 2, PAIRS_OF_2G},
        {2, 9,  "3g.40gb",    3, 2, 42, 3, 2, 0, 0, 0, 40192, 4, HALVES},
        {3, 5,  "4g.40gb",    4, 1, 56, 4, 2, 0, 0, 0, 40192, 4, WHOLE},
        {4, 0,  "7g.80gb",    7, 1, 98, 7, 5, 0, 1, 1, 81152, 8, WHOLE},
        {.index = END}}},
    {.key = "h100-80gb", .name = "NVIDIA H100 80GB HBM3", H100_SHAPE, .device_id = 0x233010DE, .mib = 81559,
     H100_BOARD(700, 2619, 1593, 1), .profiles = {
        {0, 19, "1g.10gb",    1, 7, 16, 1, 1, 0, 1, 0, 9984, 1, EIGHTHS},
        {7, 20, "1g.10gb+me", 1, 1, 16, 1, 1, 0, 1, 1, 9984, 1, EIGHTHS},
        {9, 15, "1g.20gb",    1, 4, 26, 1, 1, 0, 1, 0, 20096, 2, PAIRS},
        {1, 14, "2g.20gb",    2, 3, 32, 2, 2, 0, 2, 0, 20096, 2, PAIRS_OF_2G},
        {2, 9,  "3g.40gb",    3, 2, 60, 3, 3, 0, 3, 0, 40448, 4, HALVES},
        {3, 5,  "4g.40gb",    4, 1, 64, 4, 4, 0, 4, 0, 40448, 4, WHOLE},
        {4, 0,  "7g.80gb",    7, 1, 132, 8, 7, 0, 7, 1, 81152, 8, WHOLE},
        {.index = END}}},
    /* multiprocessors and the size of 7g: inferred from the SXM part */
    {.key = "h100-94gb", .name = "NVIDIA H100 NVL", H100_SHAPE, .device_id = 0x232110DE, .mib = 95830,
     .board = {400, 200, 1785, 2619, 345, 87, 89, 95, 95, 5, 12, 0}, .profiles = {
        {0, 19, "1g.12gb",    1, 7, 16, 1, 1, 0, 1, 0, 11008, 1, EIGHTHS},
        {7, 20, "1g.12gb+me", 1, 1, 16, 1, 1, 0, 1, 1, 11008, 1, EIGHTHS},
        {9, 15, "1g.24gb",    1, 4, 26, 1, 1, 0, 1, 0, 22144, 2, PAIRS},
        {1, 14, "2g.24gb",    2, 3, 32, 2, 2, 0, 2, 0, 22144, 2, PAIRS_OF_2G},
        {2, 9,  "3g.47gb",    3, 2, 60, 3, 3, 0, 3, 0, 47488, 4, HALVES},
        {3, 5,  "4g.47gb",    4, 1, 64, 4, 4, 0, 4, 0, 47488, 4, WHOLE},
        {4, 0,  "7g.94gb",    7, 1, 132, 8, 7, 0, 7, 1, 94976, 8, WHOLE},
        {.index = END}}},
    /* placements other than those of 3g: inferred */
    {.key = "h100-96gb", .name = "NVIDIA GH200 480GB", H100_SHAPE, .device_id = 0x234210DE, .mib = 97871,
     H100_BOARD(900, 2619, 0, 0), .profiles = {
        {0, 19, "1g.12gb",    1, 7, 16, 1, 1, 0, 1, 0, 11264, 1, EIGHTHS},
        {7, 20, "1g.12gb+me", 1, 1, 16, 1, 1, 0, 1, 1, 11264, 1, EIGHTHS},
        {9, 15, "1g.24gb",    1, 4, 26, 1, 1, 0, 1, 0, 23552, 2, PAIRS},
        {1, 14, "2g.24gb",    2, 3, 32, 2, 2, 0, 2, 0, 23552, 2, PAIRS_OF_2G},
        {2, 9,  "3g.48gb",    3, 2, 60, 3, 3, 0, 3, 0, 47616, 4, HALVES},
        {3, 5,  "4g.48gb",    4, 1, 64, 4, 4, 0, 4, 0, 47616, 4, WHOLE},
        {4, 0,  "7g.96gb",    7, 1, 132, 8, 7, 0, 7, 1, 95232, 8, WHOLE},
        {.index = END}}},
    {.key = "h200-141gb", .name = "NVIDIA H200", H100_SHAPE, .device_id = 0x233510DE, .mib = 143771,
     H100_BOARD(700, 3201, 2201, 1), .profiles = {
        {0, 19, "1g.18gb",    1, 7, 16, 1, 1, 0, 1, 0, 16384, 1, EIGHTHS},
        {7, 20, "1g.18gb+me", 1, 1, 16, 1, 1, 0, 1, 1, 16384, 1, EIGHTHS},
        {9, 15, "1g.35gb",    1, 4, 26, 1, 1, 0, 1, 0, 33280, 2, PAIRS},
        {1, 14, "2g.35gb",    2, 3, 32, 2, 2, 0, 2, 0, 33280, 2, PAIRS_OF_2G},
        {2, 9,  "3g.71gb",    3, 2, 60, 3, 3, 0, 3, 0, 71424, 4, HALVES},
        {3, 5,  "4g.71gb",    4, 1, 64, 4, 4, 0, 4, 0, 71424, 4, WHOLE},
        {4, 0,  "7g.141gb",   7, 1, 132, 8, 7, 0, 7, 1, 143360, 8, WHOLE},
        {.index = END}}},
    /* 1g, 2g and the double-memory 1g as listed; placements, and all of 3g, 4g and 7g but their names: inferred from the
     * others. (The guide's engine counts contradict the listing, so they are not used.) */
    {.key = "b200-180gb", .name = "NVIDIA B200", .architecture = NVML_DEVICE_ARCH_BLACKWELL,
     .driver = "570.133.20", .cuda = 12080, .units = 8, .max_instances = 7, .decoder = 7, .jpeg = 7, .ofa = 1,
     .device_id = 0x290110DE, .compute_capability = {10, 0}, .mib = 183359,
     .board = {1000, 200, 1965, 3996, 120, 87, 90, 93, 95, 5, 18, 1}, .profiles = {
        {0, 19, "1g.23gb",    1, 7, 18, 2, 1, 0, 1, 0, 20992, 1, EIGHTHS},
        {7, 20, "1g.23gb+me", 1, 1, 18, 2, 1, 0, 1, 1, 20992, 1, EIGHTHS},
        {9, 15, "1g.45gb",    1, 4, 30, 2, 1, 0, 1, 0, 45312, 2, PAIRS},
        {1, 14, "2g.45gb",    2, 3, 36, 4, 2, 0, 2, 0, 45312, 2, PAIRS_OF_2G},
        {2, 9,  "3g.90gb",    3, 2, 70, 6, 3, 0, 3, 0, 90624, 4, HALVES},
        {3, 5,  "4g.90gb",    4, 1, 72, 8, 4, 0, 4, 0, 90624, 4, WHOLE},
        {4, 0,  "7g.180gb",   7, 1, 148, 16, 7, 0, 7, 1, 182272, 8, WHOLE},
        {.index = END}}},
    /* Server Edition; the order of filling is inferred */
    {.key = "rtx-pro-6000", .name = "NVIDIA RTX PRO 6000 Blackwell Server Edition",
     .architecture = NVML_DEVICE_ARCH_BLACKWELL, .driver = "575.51.03", .cuda = 12090, .units = 12,
     .max_instances = 4, .decoder = 4, .encoder = 4, .jpeg = 4, .ofa = 1,
     .device_id = 0x2BB510DE, .compute_capability = {12, 0}, .mib = 97887,
     .board = {600, 300, 2430, 12481, 180, 87, 92, 95, 105, 5, 0, 0}, .profiles = {
        {0, 14,  "1g.24gb",        1, 4, 46, 1, 1, 1, 1, 0, 24192, 3, RTX_QUARTERS},
        {7, 21,  "1g.24gb+me",     1, 1, 46, 1, 1, 1, 1, 1, 24192, 3, RTX_QUARTERS},
        {10, 47, "1g.24gb+gfx",    1, 4, 46, 1, 1, 1, 1, 0, 24192, 3, RTX_QUARTERS},
        {15, 65, "1g.24gb+me.all", 1, 1, 46, 1, 4, 4, 4, 1, 24192, 3, RTX_QUARTERS},
        {13, 67, "1g.24gb-me",     1, 4, 46, 1, 0, 0, 0, 0, 24192, 3, RTX_QUARTERS},
        {1, 5,   "2g.48gb",        2, 2, 94, 2, 2, 2, 2, 0, 48512, 6, RTX_HALVES},
        {11, 35, "2g.48gb+gfx",    2, 2, 94, 2, 2, 2, 2, 0, 48512, 6, RTX_HALVES},
        {16, 64, "2g.48gb+me.all", 2, 1, 94, 2, 4, 4, 4, 1, 48512, 6, RTX_HALVES},
        {14, 66, "2g.48gb-me",     2, 2, 94, 2, 0, 0, 0, 0, 48512, 6, RTX_HALVES},
        {3, 0,   "4g.96gb",        4, 1, 188, 4, 4, 4, 4, 1, 97408, 12, WHOLE},
        {12, 32, "4g.96gb+gfx",    4, 1, 188, 4, 4, 4, 4, 1, 97408, 12, WHOLE},
        {.index = END}}},
    {.key = "v100-32gb", .name = "Tesla V100-SXM2-32GB", .architecture = NVML_DEVICE_ARCH_VOLTA,
     .device_id = 0x1DB510DE, .compute_capability = {7, 0}, .mib = 32768,
     .board = {300, 150, 1530, 877, 135, 83, 87, 90, 85, 3, 6, 0}, .profiles = {{.index = END}}},
    {.key = "t4", .name = "Tesla T4", .architecture = NVML_DEVICE_ARCH_TURING,
     .device_id = 0x1EB810DE, .compute_capability = {7, 5}, .mib = 15360,
     .board = {70, 60, 1590, 5001, 300, 85, 93, 96, 0, 3, 0, 0}, .profiles = {{.index = END}}},
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
