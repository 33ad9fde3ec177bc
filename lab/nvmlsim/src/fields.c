/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "fields.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const char *word; int value; } word;
typedef enum { KEPT, NUMBER, WORD, WORDS, LINKS } form; /* KEPT: the state's own, not for tests */

/* Bits of nvml.h's nvmlClocksEventReason*, under the names that nvidia-smi --query-gpu gives them. */
static const word REASONS[] = {
    {"gpu_idle", 0x1}, {"applications_clocks_setting", 0x2}, {"sw_power_cap", 0x4},
    {"hw_slowdown", 0x8}, {"sync_boost", 0x10}, {"sw_thermal_slowdown", 0x20},
    {"hw_thermal_slowdown", 0x40}, {"hw_power_brake_slowdown", 0x80}, {"display_clock_setting", 0x100}, {NULL, 0}};
static const word SWITCH[] = {{"off", 0}, {"on", 1}, {"0", 0}, {"1", 1}, {NULL, 0}};
static const word FABRIC[] = {
    {"not_started", FABRIC_NOT_STARTED}, {"in_progress", FABRIC_IN_PROGRESS},
    {"completed", FABRIC_COMPLETED}, {"failed", FABRIC_FAILED}, {NULL, 0}};

static const word COMPUTE_MODES[] = {
    {"default", 0}, {"prohibited", 2}, {"exclusive_process", 3}, {NULL, 0}};

#define FIELD(name) #name, offsetof(gpu, name)
static const struct { const char *key; size_t offset; form form; int most; const word *words; } FIELDS[] = {
    {FIELD(minor), KEPT, 0, NULL},
    {FIELD(current), KEPT, 0, NULL},
    {FIELD(pending), KEPT, 0, NULL},
    {FIELD(ecc_corrected_before), KEPT, 0, NULL},
    {FIELD(ecc_uncorrected_before), KEPT, 0, NULL},
    {FIELD(sram_uncorrected_before), KEPT, 0, NULL},
    {FIELD(clients), NUMBER, INT32_MAX, NULL},
    {FIELD(profiler), WORD, 0, SWITCH},
    {FIELD(passthrough), WORD, 0, SWITCH},
    {FIELD(lost), WORD, 0, SWITCH},
    {FIELD(persistence), WORD, 0, SWITCH},
    {FIELD(display), WORD, 0, SWITCH},
    {FIELD(temperature), NUMBER, 255, NULL},
    {FIELD(memory_temperature), NUMBER, 255, NULL},
    {FIELD(slowdown_temperature), NUMBER, 255, NULL},
    {FIELD(power), NUMBER, INT32_MAX, NULL},
    {FIELD(power_limit), NUMBER, INT32_MAX, NULL},
    {FIELD(throttle), WORDS, 0, REASONS},
    {FIELD(clock_sm), NUMBER, 100000, NULL},
    {FIELD(gpu_clock_least), NUMBER, 100000, NULL},
    {FIELD(gpu_clock_most), NUMBER, 100000, NULL},
    {FIELD(memory_clock_least), NUMBER, 100000, NULL},
    {FIELD(memory_clock_most), NUMBER, 100000, NULL},
    {FIELD(compute_mode), WORD, 0, COMPUTE_MODES},
    {FIELD(accounting), WORD, 0, SWITCH},
    {FIELD(utilization), NUMBER, 100, NULL},
    {FIELD(ecc), WORD, 0, SWITCH},
    {FIELD(ecc_pending), WORD, 0, SWITCH},
    {FIELD(ecc_corrected), NUMBER, INT32_MAX, NULL},
    {FIELD(ecc_uncorrected), NUMBER, INT32_MAX, NULL},
    {FIELD(sram_uncorrected), NUMBER, INT32_MAX, NULL},
    {FIELD(sram_threshold), WORD, 0, SWITCH},
    {FIELD(remapped_corrected), NUMBER, INT32_MAX, NULL},
    {FIELD(remapped_uncorrected), NUMBER, INT32_MAX, NULL},
    {FIELD(remap_pending), WORD, 0, SWITCH},
    {FIELD(remap_failure), WORD, 0, SWITCH},
    {FIELD(retired_single), NUMBER, 64, NULL}, /* nvml: at most 64 pages can be retired */
    {FIELD(retired_double), NUMBER, 64, NULL},
    {FIELD(retired_pending), WORD, 0, SWITCH},
    {FIELD(inforom_corrupted), WORD, 0, SWITCH},
    {FIELD(pcie_width), NUMBER, 16, NULL},
    {FIELD(pcie_generation), NUMBER, 6, NULL},
    {FIELD(pcie_replay), NUMBER, INT32_MAX, NULL},
    {FIELD(nvlink_down), LINKS, 0, NULL},
    {FIELD(nvlink_crc), NUMBER, INT32_MAX, NULL},
    {FIELD(fabric), WORD, 0, FABRIC},
    {FIELD(recovery_action), NUMBER, 7, NULL}, /* nvmlDeviceGpuRecoveryAction_t */
};
#define FIELD_COUNT (sizeof FIELDS / sizeof *FIELDS)

static int *at(const gpu *g, unsigned i) { return (int *)((char *)g + FIELDS[i].offset); }

void fields_default(gpu *g) {
    const board *b = &g->model->board;
    for (unsigned i = 0; i < FIELD_COUNT; i++) *at(g, i) = 0;
    g->temperature = 33;
    g->memory_temperature = 35;
    g->slowdown_temperature = b->slowdown_celsius;
    g->power = b->watts * 100; /* idle: a tenth of the limit */
    g->power_limit = b->watts * 1000;
    g->clock_sm = b->idle_mhz;
    g->ecc = g->ecc_pending = 1;
    g->pcie_width = 16;
    g->pcie_generation = b->pcie_generation;
    g->fabric = b->fabric ? FABRIC_COMPLETED : FABRIC_NONE;
}

/* ---- the state file ---- */

void fields_read(gpu *g, const char *line) {
    char key[32];
    int number;
    for (const char *p = strchr(line, ' '); p; p = strchr(p + 1, ' ')) {
        if (sscanf(p, " %31[a-z_]=%d", key, &number) != 2) continue;
        for (unsigned i = 0; i < FIELD_COUNT; i++)
            if (!strcmp(FIELDS[i].key, key)) *at(g, i) = number;
    }
}

void fields_write(FILE *file, const gpu *g) {
    gpu healthy = {.model = g->model};
    fields_default(&healthy);
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        if (FIELDS[i].form == KEPT || *at(g, i) != *at(&healthy, i)) fprintf(file, " %s=%d", FIELDS[i].key, *at(g, i));
}

/* ---- values ---- */

static int parse_number(const char *text, int most, int *out) {
    char *end;
    long n = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n > most) return -1;
    *out = (int)n;
    return 0;
}

static int parse_word(const char *text, size_t length, const word *words, int *out) {
    for (const word *w = words; w->word; w++)
        if (strlen(w->word) == length && !strncmp(w->word, text, length)) {
            *out = w->value;
            return 0;
        }
    return -1;
}

/* Words or link numbers, separated by commas, as a set of bits; an empty text is the empty set. */
static int parse_set(const char *text, const word *words, int links, int *out) {
    *out = 0;
    while (*text) {
        char item[32];
        int number = 0;
        size_t length = strcspn(text, ",");
        snprintf(item, sizeof item, "%.*s", (int)length, text);
        if (words ? parse_word(text, length, words, &number) : parse_number(item, links - 1, &number)) return -1;
        *out |= words ? number : 1 << number;
        text += length + (text[length] == ',');
    }
    return 0;
}

int fields_set(gpu *g, const char *key, const char *value) {
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        int n, bad = 1;
        if (strcmp(FIELDS[i].key, key)) continue;
        switch (FIELDS[i].form) {
        case KEPT: break;
        case NUMBER: bad = parse_number(value, FIELDS[i].most, &n); break;
        case WORD: bad = parse_word(value, strlen(value), FIELDS[i].words, &n); break;
        case WORDS: bad = parse_set(value, FIELDS[i].words, 0, &n); break;
        case LINKS: bad = parse_set(value, NULL, g->model->board.nvlinks, &n); break;
        }
        if (bad) return -1;
        *at(g, i) = n;
        if (at(g, i) == &g->ecc) g->ecc_pending = n; /* as after a reset; ecc_pending alone is a change that waits */
        return 0;
    }
    return -1;
}

void fields_forget_settings(gpu *g) {
    g->power_limit = g->model->board.watts * 1000;
    g->gpu_clock_least = g->gpu_clock_most = g->memory_clock_least = g->memory_clock_most = 0;
    g->compute_mode = g->accounting = 0;
}

void fields_after_reset(gpu *g) {
    fields_forget_settings(g);
    g->ecc = g->ecc_pending;
    g->ecc_corrected_before += g->ecc_corrected;
    g->ecc_uncorrected_before += g->ecc_uncorrected;
    g->sram_uncorrected_before += g->sram_uncorrected;
    g->ecc_corrected = g->ecc_uncorrected = g->sram_uncorrected = 0;
    g->remap_pending = g->retired_pending = 0;
    g->nvlink_crc = g->pcie_replay = 0;
    g->recovery_action = 0;
}
