/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nodes.h"

int init_count;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* a lock on a file does not separate threads */
static struct { const char *name; access_kind kind; int lock, kill_after; } current;

/* NVMLSIM_UID poses as another user. It opens nothing: the files' own permissions still hold. */
int caller_is_privileged(void) {
    const char *uid = getenv("NVMLSIM_UID");
    return (uid ? atoi(uid) == 0 : geteuid() == 0) && nodes_config_visible();
}

/* ---- faults ---- */

static int fault_code(const char *word) {
    if (!strcmp(word, "hang")) return FAULT_HANG;
    if (!strcmp(word, "kill")) return FAULT_KILL;
    if (!strcmp(word, "kill-after")) return FAULT_KILL_AFTER;
    return atoi(word);
}

/* NVMLSIM_FAULT="nvmlX@2=23,write@3=kill": the 2nd nvmlX of this process fails with code 23, the 3rd call that writes
 * ends the process. Calls are counted anew when the variable changes. */
static int faults_of_environment(fault *out) {
    const char *text = getenv("NVMLSIM_FAULT");
    int count = 0;
    for (; text && *text && count < MAX_FAULTS; text += strcspn(text, ",") + (strchr(text, ',') != NULL)) {
        fault f = {.nth = 0};
        char word[16];
        if (sscanf(text, "%63[A-Za-z0-9_*]@%d=%15[a-z0-9-]", f.call, &f.nth, word) != 3 &&
            (f.nth = 0, sscanf(text, "%63[A-Za-z0-9_*]=%15[a-z0-9-]", f.call, word) != 2))
            continue;
        f.code = fault_code(word);
        out[count++] = f;
    }
    return count;
}

/* calls of this process that a fault has matched since NVMLSIM_FAULT was changed */
static struct { char call[64]; int count; } matched[2 * MAX_FAULTS];

static void count_anew_if_changed(void) {
    static char last[256];
    char now[sizeof last];
    const char *text = getenv("NVMLSIM_FAULT");
    snprintf(now, sizeof now, "%s", text ? text : "");
    if (!strcmp(now, last)) return;
    memcpy(last, now, sizeof last);
    memset(matched, 0, sizeof matched);
}

static int *count_of(const char *call) {
    unsigned i = 0;
    while (i < 2 * MAX_FAULTS - 1 && matched[i].call[0] && strcmp(matched[i].call, call)) i++;
    snprintf(matched[i].call, sizeof matched[i].call, "%.63s", call);
    return &matched[i].count;
}

/* A fault names a function, or "write" for all that change something, or "*" for all. */
static int is_meant(const char *call) {
    return !strcmp(call, "*") || !strcmp(call, current.name) || (!strcmp(call, "write") && current.kind == WRITE);
}

static int injected_fault(void) {
    fault faults[2 * MAX_FAULTS];
    count_anew_if_changed();
    int count = faults_of_environment(faults);
    memcpy(faults + count, host.faults, host.fault_count * sizeof *faults);
    count += host.fault_count;
    int result = 0;
    for (int i = 0; i < count; i++) {
        int counted = 0;
        for (int k = 0; k < i; k++) counted |= !strcmp(faults[k].call, faults[i].call);
        if (is_meant(faults[i].call)) *count_of(faults[i].call) += !counted;
    }
    for (int i = 0; i < count; i++) {
        const fault *f = &faults[i];
        if (is_meant(f->call) && (!f->nth || f->nth == *count_of(f->call))) result = f->code;
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

/* As a call into a driver that never answers: the process can be killed, and nothing else. */
static void hang(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;) pause();
}

nvml_return call_begin(const char *name, access_kind kind) {
    pthread_mutex_lock(&mutex);
    current.name = name;
    current.kind = kind;
    current.lock = -1;
    current.kill_after = 0;
    if (!init_count && strncmp(name, "nvmlInit", 8)) return NVML_ERROR_UNINITIALIZED;
    if (host_load()) return errno == ENOENT ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_UNKNOWN;
    if (!host.loaded) return NVML_ERROR_DRIVER_NOT_LOADED;
    int injected = injected_fault();
    if (injected == FAULT_HANG) hang();
    if (injected == FAULT_KILL) kill(getpid(), SIGKILL);
    if (injected > 0) return (nvml_return)injected;
    current.kill_after = injected == FAULT_KILL_AFTER;
    if (kind != READ && !caller_is_privileged()) return NVML_ERROR_NO_PERMISSION;
    if (kind != WRITE) return NVML_SUCCESS;
    current.lock = host_lock();
    if (current.lock < 0) return errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
    return host_load() ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvml_return call_pause(unsigned milliseconds) {
    __typeof__(current) mine = current;
    pthread_mutex_unlock(&mutex);
    usleep(milliseconds * 1000);
    pthread_mutex_lock(&mutex);
    current = mine;
    if (host_load()) return NVML_ERROR_UNKNOWN;
    return host.loaded ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

nvml_return call_end(nvml_return result) {
    if (current.lock >= 0) {
        if (!result && (host_save() || nodes_publish())) result = NVML_ERROR_UNKNOWN;
        close(current.lock);
    }
    log_call(result);
    if (current.kill_after) kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&mutex);
    return result;
}

nvml_return copy_text(const char *text, char *out, uint32_t size) {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}
