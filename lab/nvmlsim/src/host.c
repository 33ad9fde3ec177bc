/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading, writing and locking the state file. A line is a word and key=value pairs without blanks. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fields.h"

#define FIRST_LINE "nvmlsim 1\n"
#define LAST_LINE "end\n"

host_state host;

const char *host_directory(void) {
    const char *directory = getenv("NVMLSIM_STATE");
    return directory && *directory ? directory : "/var/lib/nvmlsim";
}

static void path_of(const char *name, char *out, size_t size) {
    snprintf(out, size, "%s/%s", host_directory(), name);
}

/* ---- fields of a line ---- */

static void text_field(const char *line, const char *key, char *out, size_t size) {
    size_t length = strlen(key);
    for (const char *p = strchr(line, ' '); p; p = strchr(p, ' ')) {
        p++;
        if (strncmp(p, key, length) || p[length] != '=') continue;
        snprintf(out, size, "%.*s", (int)strcspn(p + length + 1, " \n"), p + length + 1);
        return;
    }
    *out = 0;
}

static int number_field(const char *line, const char *key) {
    char text[32];
    text_field(line, key, text, sizeof text);
    return atoi(text);
}

/* ---- reading ---- */

static int read_gpu(const char *line) {
    if (host.gpu_count == MAX_GPUS) return -1;
    gpu *g = &host.gpus[host.gpu_count++];
    char key[64];
    text_field(line, "model", key, sizeof key);
    g->model = model_by_key(key);
    text_field(line, "bus", g->bus, sizeof g->bus);
    text_field(line, "uuid", g->uuid, sizeof g->uuid);
    text_field(line, "serial", g->serial, sizeof g->serial);
    if (!g->model) return -1;
    fields_default(g);
    fields_read(g, line);
    return 0;
}

static int read_line(const char *line) {
    if (!strncmp(line, "host ", 5)) {
        text_field(line, "driver", host.driver, sizeof host.driver);
        text_field(line, "kernel_driver", host.kernel_driver, sizeof host.kernel_driver);
        text_field(line, "dev", host.dev, sizeof host.dev);
        text_field(line, "run", host.run, sizeof host.run);
        text_field(line, "log", host.log, sizeof host.log);
        host.cuda = number_field(line, "cuda");
        host.loaded = number_field(line, "loaded");
        return 0;
    }
    if (!strncmp(line, "gpu ", 4)) return read_gpu(line);
    if (!strncmp(line, "fault ", 6)) {
        if (host.fault_count == MAX_FAULTS) return -1;
        fault *f = &host.faults[host.fault_count++];
        text_field(line, "call", f->call, sizeof f->call);
        f->nth = number_field(line, "nth");
        f->code = number_field(line, "code");
        return 0;
    }

    if (!strncmp(line, "event ", 6)) {
        if (host.event_count == MAX_EVENTS) return -1;
        host.events[host.event_count++] =
            (event){number_field(line, "gpu"), number_field(line, "xid"), number_field(line, "gi"),
                    number_field(line, "ci"), number_field(line, "number")};
        return 0;
    }

    unsigned index = number_field(line, "gpu"), gi = number_field(line, "gi"), ci = number_field(line, "ci");
    if (index >= (unsigned)host.gpu_count) return -1;
    gpu *g = &host.gpus[index];
    if (!strncmp(line, "process ", 8)) {
        if (g->process_count == MAX_PROCESSES) return -1;
        g->processes[g->process_count++] =
            (process){number_field(line, "pid"), (int)gi, (int)ci, number_field(line, "mib")};
        return 0;
    }
    if (gi >= MAX_GPU_INSTANCES) return -1;
    int id = number_field(line, "profile"), start = number_field(line, "start"), size = number_field(line, "size");
    if (!strncmp(line, "gi ", 3)) {
        if (!profile_by_id(g->model, id)) return -1;
        g->instances[gi] = (gpu_instance){.used = 1, .profile_id = id, .start = start, .units = size};
        return 0;
    }
    if (strncmp(line, "ci ", 3) || ci >= MAX_COMPUTE_INSTANCES) return -1;
    g->instances[gi].compute[ci] = (compute_instance){1, id, start, size};
    return 0;
}

int host_load(void) {
    char path[512], line[4096];
    path_of("state", path, sizeof path);
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    memset(&host, 0, sizeof host);
    int whole = 0, bad = !fgets(line, sizeof line, file) || strcmp(line, FIRST_LINE);
    while (!bad && !whole && fgets(line, sizeof line, file)) {
        whole = !strcmp(line, LAST_LINE);
        bad = !whole && read_line(line);
    }
    fclose(file);
    if (!bad && whole) return 0;
    errno = EBADMSG;
    return -1;
}

/* ---- writing ---- */

static void write_gpu(FILE *file, int n, gpu *g) {
    fprintf(file, "gpu model=%s bus=%s uuid=%s serial=%s", g->model->key, g->bus, g->uuid, g->serial);
    fields_write(file, g);
    fputc('\n', file);
    for (int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const gpu_instance *gi = &g->instances[i];
        if (!gi->used) continue;
        fprintf(file, "gi gpu=%d gi=%d profile=%d start=%d size=%d\n", n, i, gi->profile_id, gi->start, gi->units);
        for (int c = 0; c < MAX_COMPUTE_INSTANCES; c++) {
            const compute_instance *ci = &gi->compute[c];
            if (ci->used)
                fprintf(file, "ci gpu=%d gi=%d ci=%d profile=%d start=%d size=%d\n", n, i, c, ci->profile_index,
                        ci->start, ci->slices);
        }
    }
    for (int i = 0; i < g->process_count; i++) {
        const process *p = &g->processes[i];
        fprintf(file, "process gpu=%d pid=%d gi=%d ci=%d mib=%d\n", n, p->pid, p->gpu_instance,
                p->compute_instance, p->mib);
    }
}

int host_save(void) {
    char path[512], next[512];
    path_of("state", path, sizeof path);
    path_of("state.new", next, sizeof next);
    unlink(next); /* of a writer that was killed */
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) return -1;
    fputs(FIRST_LINE, file);
    fprintf(file, "host driver=%s kernel_driver=%s cuda=%d loaded=%d dev=%s run=%s log=%s\n", host.driver,
            host.kernel_driver, host.cuda, host.loaded, host.dev, host.run, host.log);
    for (int i = 0; i < host.gpu_count; i++) write_gpu(file, i, &host.gpus[i]);
    for (int i = 0; i < host.fault_count; i++)
        fprintf(file, "fault call=%s nth=%d code=%d\n", host.faults[i].call, host.faults[i].nth,
                host.faults[i].code);
    for (int i = 0; i < host.event_count; i++) {
        const event *e = &host.events[i];
        fprintf(file, "event gpu=%d xid=%d gi=%d ci=%d number=%d\n", e->gpu, e->xid, e->gpu_instance,
                e->compute_instance, e->number);
    }
    fputs(LAST_LINE, file);
    /* A process with a strict umask must not make the state unreadable for the others. */
    int failed = fflush(file) || fchmod(fd, 0644) || fdatasync(fd) || ferror(file);
    failed |= fclose(file);
    return failed ? -1 : rename(next, path);
}

int host_lock(void) {
    char path[512];
    path_of("lock", path, sizeof path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    while (flock(fd, LOCK_EX))
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    return fd;
}

/* ---- changing ---- */

static int parse_number(const char *value, int *out) {
    char *end;
    long n = strtol(value, &end, 10);
    if (!*value || *end || n < 0 || n > INT32_MAX) return -1;
    *out = (int)n;
    return 0;
}

static int set_text(const char *value, char *out, size_t size) {
    if (strlen(value) >= size || strpbrk(value, " \t\n")) return -1;
    strcpy(out, value);
    return 0;
}

int host_set(const char *key, const char *value) {
    if (!strcmp(key, "driver"))
        return *value && !set_text(value, host.driver, sizeof host.driver)
                   ? set_text(value, host.kernel_driver, sizeof host.kernel_driver)
                   : -1;
    if (!strcmp(key, "kernel_driver"))
        return *value ? set_text(value, host.kernel_driver, sizeof host.kernel_driver) : -1;
    if (!strcmp(key, "log")) return set_text(value, host.log, sizeof host.log);
    if (!strcmp(key, "cuda")) return parse_number(value, &host.cuda);
    return -1;
}

int gpu_has_instances(const gpu *g) {
    int any = 0;
    for (int i = 0; i < MAX_GPU_INSTANCES; i++) any |= g->instances[i].used;
    return any;
}

int gpu_is_held(const gpu *g) { return g->clients || g->profiler || g->process_count; }

void gpu_clear_instances(gpu *g) {
    memset(g->instances, 0, sizeof g->instances);
    g->process_count = 0;
}
