/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What happens to a host from outside NVML: it is built, booted, its GPUs are reset, programs come and go. The entry
 * point for the command simgpu; not part of NVML. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "call.h"
#include "fields.h"
#include "handles.h"
#include "nodes.h"

#define DRIVER "550.163.01" /* Debian 13's */
#define CUDA 12040

typedef struct { char *text; size_t size; } answer;

/* Put a sentence into the answer; returns -1, so that a refusal is `return refuse(...)`. */
static int refuse(answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(answer *a, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->text, a->size, format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- init ---- */

static uint64_t random_bits(void) {
    uint64_t bits = 0;
    while (getrandom(&bits, sizeof bits, 0) != sizeof bits) continue;
    return bits;
}

static int add_gpu(const char *key, answer *a) {
    char known[256];
    const model *m = model_by_key(key);
    if (!m) {
        model_keys(known, sizeof known);
        return refuse(a, "There is no GPU model '%s': the simulator knows %s.", key, known);
    }
    if (host.gpu_count == MAX_GPUS) return refuse(a, "A simulated host holds at most %d GPUs.", MAX_GPUS);
    int n = host.gpu_count++;
    gpu *g = &host.gpus[n];
    uint64_t high = random_bits(), low = random_bits();
    *g = (gpu){.model = m};
    fields_default(g);
    g->minor = n;
    if (m->driver && strverscmp(m->driver, host.driver) > 0) {
        strcpy(host.driver, m->driver);
        host.cuda = m->cuda;
    }
    snprintf(g->bus, sizeof g->bus, "0000:%02x:00.0", 0x07 + 8 * n);
    snprintf(g->uuid, sizeof g->uuid, "GPU-%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
             (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xfff, ((unsigned)(low >> 48) & 0x3fff) | 0x8000,
             (unsigned long long)(low & 0xffffffffffffull));
    snprintf(g->serial, sizeof g->serial, "%013llu", (unsigned long long)(random_bits() % 10000000000000ull));
    return 0;
}

/* init DEV RUN MODEL...: a fresh host; DEV and RUN may be empty */
static int init(int count, const char *const *words, answer *a) {
    memset(&host, 0, sizeof host);
    strcpy(host.driver, DRIVER);
    host.cuda = CUDA;
    host.loaded = 1;
    if (strlen(words[0]) >= sizeof host.dev || strlen(words[1]) >= sizeof host.run)
        return refuse(a, "The directories of the device nodes have too long names.");
    strcpy(host.dev, words[0]);
    strcpy(host.run, words[1]);
    for (int i = 2; i < count; i++)
        if (add_gpu(words[i], a)) return -1;
    strcpy(host.kernel_driver, host.driver);
    return 0;
}

/* ---- boot, driver, reset ---- */

/* The module is the one on disk, of the library's version. */
static void load_module(void) {
    strcpy(host.kernel_driver, host.driver);
    host.loaded = 1;
}

/* No instance and no process survives; the mode does where the board stores it, and applies what was pending. */
static int boot(int count, const char *const *words, answer *a) {
    (void)count;
    (void)words;
    for (int i = 0; i < host.gpu_count; i++) {
        gpu *g = &host.gpus[i];
        g->current = g->pending = g->model->mode_is_stored && g->pending;
        g->clients = g->profiler = g->persistence = g->lost = 0;
        fields_after_reset(g);
        gpu_clear_instances(g);
    }
    load_module();
    host.event_count = 0;
    return nodes_start() ? refuse(a, "%s/driver cannot be written: %s.", host.run, strerror(errno)) : 0;
}

/* A Hopper's mode lives only while the driver is loaded; a stored one stays, and what is pending stays pending. */
static int unload(int count, const char *const *words, answer *a) {
    (void)count;
    (void)words;
    for (int i = 0; i < host.gpu_count; i++)
        if (gpu_is_held(&host.gpus[i]))
            return refuse(a, "The driver cannot be unloaded: GPU %d is in use (see simgpu status).", i);
    for (int i = 0; i < host.gpu_count; i++) {
        gpu *g = &host.gpus[i];
        if (!g->model->mode_is_stored) g->current = g->pending = 0;
        g->persistence = 0;
        fields_forget_settings(g);
        gpu_clear_instances(g);
    }
    host.loaded = 0;
    return 0;
}

static int load(int count, const char *const *words, answer *a) {
    (void)count;
    (void)words;
    (void)a;
    load_module();
    return 0;
}

static int find_gpu(const char *word, gpu **g, answer *a) {
    char *end;
    long n = strtol(word, &end, 10);
    for (int i = 0; i < host.gpu_count; i++)
        if ((*word && !*end && n == i) || !strcmp(word, host.gpus[i].uuid)) {
            *g = &host.gpus[i];
            return 0;
        }
    return refuse(a, "There is no GPU '%s': give an index below %d or a UUID.", word, host.gpu_count);
}

static int find_slice(const char *uuid, reference *found, answer *a) {
    for (int i = 0; i < host.gpu_count; i++)
        for (int gi = 0; gi < MAX_GPU_INSTANCES; gi++)
            for (int ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
                reference r = {&host.gpus[i], i, gi, ci};
                char name[64];
                if (!r.g->instances[gi].used || !r.g->instances[gi].compute[ci].used) continue;
                mig_uuid(&r, name, sizeof name);
                if (strcmp(uuid, name)) continue;
                *found = r;
                return 0;
            }
    return refuse(a, "There is no slice '%s' (see simgpu status).", uuid);
}

/* A slice by its UUID, or a GPU by index or UUID. */
static int find_target(const char *word, reference *found, answer *a) {
    *found = (reference){.gi = -1, .ci = -1};
    return strncmp(word, "MIG-", 4) ? find_gpu(word, &found->g, a) : find_slice(word, found, a);
}

/* reset GPU */
static int reset(int count, const char *const *words, answer *a) {
    (void)count;
    gpu *g;
    if (find_gpu(words[0], &g, a)) return -1;
    if (g->passthrough) return refuse(a, "GPU %s is passed through to a VM, which cannot reset it: reboot.", words[0]);
    if (gpu_is_held(g)) return refuse(a, "GPU %s is in use and cannot be reset: stop its clients first.", words[0]);
    if (g->lost) return refuse(a, "GPU %s fell off the bus and cannot be reset: reboot.", words[0]);
    gpu_clear_instances(g);
    fields_after_reset(g);
    g->current = g->pending;
    return 0;
}

/* ---- disturbances ---- */

/* set GPU|host KEY VALUE */
static int set(int count, const char *const *words, answer *a) {
    (void)count;
    gpu *g = NULL;
    int whole_host = !strcmp(words[0], "host");
    if (!whole_host && find_gpu(words[0], &g, a)) return -1;
    if (whole_host ? host_set(words[1], words[2]) : fields_set(g, words[1], words[2]))
        return refuse(a, "%s=%s cannot be set on %s: see simgpu set --help.", words[1], words[2], words[0]);
    return 0;
}

/* xid SLICE|GPU NUMBER: an event for those who wait for it; what goes into the kernel log is simgpu's part */
static int xid(int count, const char *const *words, answer *a) {
    (void)count;
    reference r;
    int number = atoi(words[1]);
    if (find_target(words[0], &r, a)) return -1;
    if (number <= 0) return refuse(a, "'%s' is no number of an Xid: they count from 1.", words[1]);
    int last = host.event_count ? host.events[host.event_count - 1].number : 0;
    if (host.event_count == MAX_EVENTS)
        memmove(host.events, host.events + 1, --host.event_count * sizeof *host.events);
    host.events[host.event_count++] = (event){(int)(r.g - host.gpus), number, r.gi, r.ci, last + 1};
    return 0;
}

/* fault-add CALL NTH CODE */
static int add_fault(int count, const char *const *words, answer *a) {
    (void)count;
    if (host.fault_count == MAX_FAULTS) return refuse(a, "There are %d faults already: clear them first.", MAX_FAULTS);
    fault *f = &host.faults[host.fault_count++];
    if (strlen(words[0]) >= sizeof f->call || strpbrk(words[0], " \n"))
        return refuse(a, "'%s' is not the name of an NVML call.", words[0]);
    strcpy(f->call, words[0]);
    f->nth = atoi(words[1]);
    f->code = atoi(words[2]);
    return 0;
}

static int clear_faults(int count, const char *const *words, answer *a) {
    (void)count;
    (void)words;
    (void)a;
    host.fault_count = 0;
    return 0;
}

/* ---- processes ---- */

/* process-start SLICE|GPU PID MIB */
static int start_process(int count, const char *const *words, answer *a) {
    (void)count;
    reference r;
    int pid = atoi(words[1]), mib = atoi(words[2]);
    if (find_target(words[0], &r, a)) return -1;
    gpu *g = r.g;
    if (r.gi < 0 && g->current)
        return refuse(a, "GPU %s is in MIG mode: a process computes on a slice of it.", words[0]);
    if (pid <= 0 || mib < 0) return refuse(a, "A process has a positive id and uses 0 MiB or more.");
    long total = r.gi < 0 ? g->model->mib : profile_of(&r)->mib;
    for (int i = 0; i < g->process_count; i++)
        if (g->processes[i].gpu_instance == r.gi) total -= g->processes[i].mib;
    if (mib > total) return refuse(a, "%s has no %d MiB free, only %ld.", words[0], mib, total);
    if (g->process_count == MAX_PROCESSES) return refuse(a, "At most %d processes run on one GPU.", MAX_PROCESSES);
    g->processes[g->process_count++] = (process){pid, r.gi, r.ci, mib};
    return 0;
}

/* process-stop PID */
static int stop_process(int count, const char *const *words, answer *a) {
    (void)count;
    int pid = atoi(words[0]), stopped = 0;
    for (int i = 0; i < host.gpu_count; i++) {
        gpu *g = &host.gpus[i];
        int kept = 0;
        for (int k = 0; k < g->process_count; k++) {
            if (g->processes[k].pid == pid)
                stopped++;
            else
                g->processes[kept++] = g->processes[k];
        }
        g->process_count = kept;
    }
    return stopped ? 0 : refuse(a, "No process %s uses a GPU.", words[0]);
}

/* ---- entry ---- */

static const struct {
    const char *name;
    int words, more; /* how many words it needs; whether more may follow */
    int (*run)(int count, const char *const *words, answer *a);
} COMMANDS[] = {
    {"init", 2, 1, init},
    {"boot", 0, 0, boot},
    {"driver-load", 0, 0, load},
    {"driver-unload", 0, 0, unload},
    {"reset", 1, 0, reset},
    {"set", 3, 0, set},
    {"xid", 2, 0, xid},
    {"fault-add", 3, 0, add_fault},
    {"fault-clear", 0, 0, clear_faults},
    {"process-start", 3, 0, start_process},
    {"process-stop", 1, 0, stop_process},
};

static int run(const char *name, int count, const char *const *words, answer *a) {
    for (unsigned i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        if (strcmp(COMMANDS[i].name, name)) continue;
        if (count < COMMANDS[i].words || (count > COMMANDS[i].words && !COMMANDS[i].more))
            return refuse(a, "%s takes %d words.", name, COMMANDS[i].words);
        if (strcmp(name, "init") && host_load())
            return refuse(a, "%s holds no simulated host (%s): run simgpu init first.", host_directory(),
                          strerror(errno));
        if (COMMANDS[i].run(count, words, a)) return -1;
        if (host_save()) return refuse(a, "%s/state cannot be written: %s.", host_directory(), strerror(errno));
        return nodes_publish() ? refuse(a, "%s/driver cannot be written: %s.", host.run, strerror(errno)) : 0;
    }
    return refuse(a, "There is no command '%s'.", name);
}

/* Change the host under the writers' lock. Returns 0, or -1 with a sentence in `text`. */
API int nvmlsim_control(const char *name, int count, const char *const *words, char *text, size_t size) {
    answer a = {text, size};
    if (size) *text = 0;
    int lock = host_lock();
    if (lock < 0) return refuse(&a, "%s/lock cannot be taken: %s.", host_directory(), strerror(errno));
    int result = run(name, count, words, &a);
    close(lock);
    return result;
}

/* The host's MIG devices, one "gpu gi ci name uuid" per line: the state holds neither names nor UUIDs. */
API int nvmlsim_slices(char *text, size_t size) {
    size_t used = 0;
    if (host_load()) return -1;
    for (int i = 0; i < host.gpu_count; i++)
        for (int gi = 0; gi < MAX_GPU_INSTANCES; gi++)
            for (int ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++) {
                reference r = {&host.gpus[i], i, gi, ci};
                char name[64], uuid[64];
                if (!r.g->instances[gi].used || !r.g->instances[gi].compute[ci].used) continue;
                slice_name(&r, name, sizeof name);
                mig_uuid(&r, uuid, sizeof uuid);
                used += snprintf(text + used, used < size ? size - used : 0, "%d %d %d %s %s\n", i, gi, ci,
                                 name, uuid);
                if (used >= size) return -1;
            }
    return 0;
}
