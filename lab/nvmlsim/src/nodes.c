/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Minors of capabilities, as the MIG user guide ("Device Nodes") lists them in mig-minors: config 1, monitor 2,
 * then 15 GPU instances of 1 + 8 capabilities for each GPU. */
#define _GNU_SOURCE
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"

#define CONFIG_MINOR 1
#define MONITOR_MINOR 2
#define CONFIG_MODE 0400
#define CAPABILITY_MODE 0444
#define DRIVER_GPUS 32 /* the driver's own list of minors covers this many */

static int gpu_instance_minor(int gpu_minor, int gi) { return 3 + 135 * gpu_minor + 9 * gi; }

static int compute_instance_minor(int gpu_minor, int gi, int ci) {
    return gpu_instance_minor(gpu_minor, gi) + 1 + ci;
}

/* ---- visibility ---- */

/* user_namespaces(7): only the first namespace maps every user, and only in that one may root make device nodes. */
static int first_user_namespace(void) {
    unsigned inside, outside, users = 0;
    FILE *file = fopen("/proc/self/uid_map", "re");
    if (!file) return 0;
    int read = fscanf(file, "%u %u %u", &inside, &outside, &users);
    fclose(file);
    return read == 3 && users == UINT_MAX;
}

static int may_make_nodes(void) {
    return geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_MKNOD) == 1 && first_user_namespace();
}

/* Whether a process may use a device is a question for the kernel: try to open its node. A device controller or
 * the node's mode answers EPERM or EACCES. ENXIO means that the node may be opened and only the driver behind it
 * is missing, as always here. A node that does not exist is made on demand through nvidia-modprobe: taken to work for
 * root, unless a sandbox (PrivateDevices=) or a namespace of users took away the right to make nodes.
 * That NVML leaves refused MIG devices out of its enumeration is inferred from the guide's "Device Nodes" (a CUDA
 * process needs the nodes of its GPU and compute instance) and from containers, which list only what they got. */
static int node_opens(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int node_opens(const char *format, ...) {
    char path[256];
    int used = snprintf(path, sizeof path, "%s/", host.dev);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + used, sizeof path - used, format, arguments);
    va_end(arguments);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        close(fd);
        return 1;
    }
    if (errno == ENOENT) return may_make_nodes();
    return errno != EPERM && errno != EACCES;
}

nvml_return nodes_driver(void) {
    if (!*host.dev || node_opens("nvidiactl")) return NVML_SUCCESS;
    return errno == ENOENT ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_NO_PERMISSION;
}

int nodes_gpu_visible(const gpu *g) { return !*host.dev || node_opens("nvidia%d", g->minor); }

static int capability_opens(int minor) { return node_opens("nvidia-caps/nvidia-cap%d", minor); }

int nodes_slice_visible(const gpu *g, int gi, int ci) {
    return !*host.dev || (capability_opens(gpu_instance_minor(g->minor, gi)) &&
                          capability_opens(compute_instance_minor(g->minor, gi, ci)));
}

int nodes_config_visible(void) { return !*host.dev || capability_opens(CONFIG_MINOR); }

/* ---- the tree ---- */

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int remove_tree(const char *path) {
    if (!nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) || errno == ENOENT) return 0;
    return -1;
}

static int make_directories(const char *path) {
    char partial[512];
    for (const char *p = strchr(path + 1, '/');; p = strchr(p + 1, '/')) {
        snprintf(partial, sizeof partial, "%.*s", p ? (int)(p - path) : (int)strlen(path), path);
        if (mkdir(partial, 0755)) {
            if (errno != EEXIST) return -1;
        } else if (chmod(partial, 0755)) { /* whatever the umask of the caller is */
            return -1;
        }
        if (!p) return 0;
    }
}

/* Write directory/name in one step, unless it says the same already. */
static int put(const char *directory, const char *name, const char *text) {
    char path[512], next[520], found[2048];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, found, sizeof found - 1);
        close(fd);
        if (n == (ssize_t)strlen(text) && !memcmp(found, text, n)) return 0;
    }
    snprintf(next, sizeof next, "%s/.%s.new", directory, name);
    if (make_directories(directory) || (unlink(next) && errno != ENOENT)) return -1;
    fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0) return -1;
    int failed = write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, 0444);
    close(fd);
    return failed ? -1 : rename(next, path);
}

static int put_capability(const char *directory, const char *name, int minor, int mode) {
    char text[128];
    snprintf(text, sizeof text, "DeviceFileMinor: %d\nDeviceFileMode: %d\nDeviceFileModify: 1\n", minor, mode);
    return put(directory, name, text);
}

static int publish_minors(const char *root) {
    char directory[256], path[300], next[300];
    snprintf(directory, sizeof directory, "%s/nvidia-caps", root);
    snprintf(path, sizeof path, "%s/mig-minors", directory);
    if (!access(path, F_OK)) return 0; /* constant */
    snprintf(next, sizeof next, "%s/.mig-minors.new", directory);
    if (make_directories(directory)) return -1;
    FILE *file = fopen(next, "we");
    if (!file) return -1;
    fprintf(file, "config %d\nmonitor %d\n", CONFIG_MINOR, MONITOR_MINOR);
    for (int n = 0; n < DRIVER_GPUS; n++)
        for (int gi = 0; gi < MAX_GPU_INSTANCES; gi++) {
            fprintf(file, "gpu%d/gi%d/access %d\n", n, gi, gpu_instance_minor(n, gi));
            for (int ci = 0; ci < MAX_COMPUTE_INSTANCES; ci++)
                fprintf(file, "gpu%d/gi%d/ci%d/access %d\n", n, gi, ci, compute_instance_minor(n, gi, ci));
        }
    return fclose(file) || chmod(next, 0444) ? -1 : rename(next, path);
}

static int publish_instances(const char *mig, const gpu *g) {
    char directory[400], compute[420];
    for (int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const gpu_instance *gi = &g->instances[i];
        snprintf(directory, sizeof directory, "%s/gi%d", mig, i);
        if (!gi->used) {
            if (remove_tree(directory)) return -1;
            continue;
        }
        if (put_capability(directory, "access", gpu_instance_minor(g->minor, i), CAPABILITY_MODE)) return -1;
        for (int c = 0; c < MAX_COMPUTE_INSTANCES; c++) {
            snprintf(compute, sizeof compute, "%s/ci%d", directory, c);
            int failed = gi->compute[c].used
                             ? put_capability(compute, "access", compute_instance_minor(g->minor, i, c),
                                              CAPABILITY_MODE)
                             : remove_tree(compute);
            if (failed) return -1;
        }
    }
    return 0;
}

static int publish_gpu(const char *nvidia, const gpu *g) {
    char directory[300], text[512];
    snprintf(directory, sizeof directory, "%s/gpus/%s", nvidia, g->bus);
    snprintf(text, sizeof text, "Model: \t\t %s\nGPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %d\n",
             g->model->name, g->uuid, g->bus, g->minor);
    if (put(directory, "information", text)) return -1;
    if (!g->model->units) return 0;
    snprintf(directory, sizeof directory, "%s/capabilities/gpu%d/mig", nvidia, g->minor);
    return make_directories(directory) || publish_instances(directory, g);
}

int nodes_publish(void) {
    char root[200], nvidia[220], directory[240], text[256];
    snprintf(root, sizeof root, "%s/driver", host.run);
    if (!*host.run || access(root, F_OK)) return 0;
    snprintf(nvidia, sizeof nvidia, "%s/nvidia", root);
    if (!host.loaded) {
        snprintf(directory, sizeof directory, "%s/nvidia-caps", root);
        return remove_tree(nvidia) || remove_tree(directory) ? -1 : 0;
    }
    snprintf(text, sizeof text, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  (simulated)\n",
             host.kernel_driver);
    if (put(nvidia, "version", text)) return -1;
    if (put(nvidia, "params", "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"))
        return -1;
    snprintf(directory, sizeof directory, "%s/capabilities/mig", nvidia);
    if (put_capability(directory, "config", CONFIG_MINOR, CONFIG_MODE) ||
        put_capability(directory, "monitor", MONITOR_MINOR, CAPABILITY_MODE) || publish_minors(root))
        return -1;
    for (int i = 0; i < host.gpu_count; i++)
        if (publish_gpu(nvidia, &host.gpus[i])) return -1;
    return 0;
}

int nodes_start(void) {
    char root[200];
    if (!*host.run) return 0;
    snprintf(root, sizeof root, "%s/driver", host.run);
    return make_directories(root) || nodes_publish() ? -1 : 0;
}
