/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nodes.h"

int init_count;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* a lock on a file does not separate threads */
static struct { const char *name; access_kind kind; int lock; } current;

/* NVMLSIM_UID poses as another user. It opens nothing: the files' own permissions still hold. */
int caller_is_privileged(void) {
    const char *uid = getenv("NVMLSIM_UID");
    return (uid ? atoi(uid) == 0 : geteuid() == 0) && nodes_config_visible();
}

/* ---- faults ---- */

/* NVMLSIM_FAULT="nvmlX@2=23,nvmlY=999": the 2nd nvmlX of this process, and every nvmlY, fail with these codes. */
static int faults_of_environment(fault *out) {
    const char *text = getenv("NVMLSIM_FAULT");
    int count = 0;
    for (; text && *text && count < MAX_FAULTS; text += strcspn(text, ",") + (strchr(text, ',') != NULL)) {
        fault f = {.nth = 0};
        if (sscanf(text, "%63[A-Za-z0-9_*]@%d=%d", f.call, &f.nth, &f.code) == 3 ||
            (f.nth = 0, sscanf(text, "%63[A-Za-z0-9_*]=%d", f.call, &f.code) == 2))
            out[count++] = f;
    }
    return count;
}

/* calls of this process that a fault has matched so far */
static struct { char call[64]; int count; } matched[2 * MAX_FAULTS];

static int next_count(const char *call) {
    unsigned i = 0;
    while (i < 2 * MAX_FAULTS - 1 && matched[i].call[0] && strcmp(matched[i].call, call)) i++;
    snprintf(matched[i].call, sizeof matched[i].call, "%.63s", call);
    return ++matched[i].count;
}

static nvml_return injected_fault(void) {
    fault faults[2 * MAX_FAULTS];
    int count = faults_of_environment(faults);
    memcpy(faults + count, host.faults, host.fault_count * sizeof *faults);
    count += host.fault_count;
    nvml_return result = NVML_SUCCESS;
    for (int i = 0; i < count; i++) {
        const fault *f = &faults[i];
        if (strcmp(f->call, "*") && strcmp(f->call, current.name)) continue;
        int n = next_count(f->call);
        if (!f->nth || f->nth == n) result = f->code;
    }
    return result;
}

/* ---- log ---- */

/* One line per call: process, function, kind, result. */
static void log_call(nvml_return result) {
    static const char *const KINDS[] = {"read", "read", "write"};
    const char *path = getenv("NVMLSIM_LOG");
    if (!path || !*path) path = host.log;
    if (!*path) return;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return; /* an unprivileged caller may be unable to write the host's log */
    dprintf(fd, "%d %s %s %d\n", (int)getpid(), current.name, KINDS[current.kind], (int)result);
    close(fd);
}

/* ---- begin and end ---- */

nvml_return call_begin(const char *name, access_kind kind) {
    pthread_mutex_lock(&mutex);
    current.name = name;
    current.kind = kind;
    current.lock = -1;
    if (!init_count && strncmp(name, "nvmlInit", 8)) return NVML_ERROR_UNINITIALIZED;
    if (host_load()) return errno == ENOENT ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_UNKNOWN;
    if (!host.loaded) return NVML_ERROR_DRIVER_NOT_LOADED;
    nvml_return injected = injected_fault();
    if (injected) return injected;
    if (kind != READ && !caller_is_privileged()) return NVML_ERROR_NO_PERMISSION;
    if (kind != WRITE) return NVML_SUCCESS;
    current.lock = host_lock();
    if (current.lock < 0) return errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
    return host_load() ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvml_return call_end(nvml_return result) {
    if (current.lock >= 0) {
        if (!result && (host_save() || nodes_publish())) result = NVML_ERROR_UNKNOWN;
        close(current.lock);
    }
    log_call(result);
    pthread_mutex_unlock(&mutex);
    return result;
}

nvml_return copy_text(const char *text, char *out, uint32_t size) {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}
