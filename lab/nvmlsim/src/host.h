/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated host: its GPUs, their instances and processes, kept in one text file.
 *
 * <directory>/state is replaced by rename, so a reader needs no lock and always finds a whole state. Writers hold
 * <directory>/lock (mode 0600: only the owner of the state can take it, so nobody else can block a writer). */
#ifndef NVMLSIM_HOST_H
#define NVMLSIM_HOST_H

#include "abi.h"
#include "models.h"

#define MAX_GPUS 16
#define MAX_GPU_INSTANCES 15 /* ids 0..14: the driver numbers 15 GPU instances of 1 + 8 capabilities each */
#define MAX_COMPUTE_INSTANCES 8
#define MAX_PROCESSES 64
#define MAX_FAULTS 8
#define MAX_EVENTS 16 /* the last ones; what nobody waited for by then is forgotten */

typedef struct { int used, profile_index, start, slices; } compute_instance;
typedef struct {
    int used, profile_id, start, units;
    compute_instance compute[MAX_COMPUTE_INSTANCES];
} gpu_instance;
typedef struct { int pid, gpu_instance, compute_instance, mib; } process; /* instances are -1 on a whole GPU */
typedef struct { char call[64]; int nth, code; } fault; /* code: of NVML, or one of these */
enum { FAULT_HANG = -1, FAULT_KILL = -2, FAULT_KILL_AFTER = -3 };
typedef struct { int gpu, xid, gpu_instance, compute_instance, number; } event; /* number: 1, 2 ... over all GPUs */
enum { FABRIC_NONE, FABRIC_NOT_STARTED, FABRIC_IN_PROGRESS, FABRIC_COMPLETED, FABRIC_FAILED };

typedef struct {
    const model *model;
    char bus[32], uuid[64], serial[32];
    int minor;
    int current, pending; /* MIG mode */
    int clients;          /* programs that hold the driver without computing (persistence daemon, DCGM) */
    int profiler;         /* a profiler holds the GPU: no instance can be created (seen on a GH200) */
    int passthrough;      /* the host is a VM that cannot reset its GPU */
    int lost;             /* it fell off the bus */
    int persistence, display;
    int temperature, memory_temperature, slowdown_temperature; /* Celsius */
    int power, power_limit;                                    /* mW */
    int throttle;                                              /* clocks event reasons beside an idle GPU's */
    int clock_sm;                                              /* MHz */
    int gpu_clock_least, gpu_clock_most, memory_clock_least, memory_clock_most; /* MHz that clocks are locked to, or 0 */
    int compute_mode, accounting;
    int utilization;                                           /* percent */
    int ecc, ecc_pending;
    int ecc_corrected, ecc_uncorrected, sram_uncorrected; /* volatile: since the driver was loaded; in DRAM, in SRAM */
    int ecc_corrected_before, ecc_uncorrected_before, sram_uncorrected_before; /* aggregate is this and volatile */
    int sram_threshold; /* more SRAM errors than the field diagnosis allows */
    int remapped_corrected, remapped_uncorrected, remap_pending, remap_failure;
    int retired_single, retired_double, retired_pending;
    int inforom_corrupted;
    int pcie_width, pcie_generation, pcie_replay;
    int nvlink_down; /* one bit for each link */
    int nvlink_crc;  /* errors on the first link */
    int fabric;      /* FABRIC_...: registration with the fabric manager */
    int recovery_action;
    int process_count;
    process processes[MAX_PROCESSES];
    gpu_instance instances[MAX_GPU_INSTANCES];
} gpu;

typedef struct {
    char driver[32];        /* of the library */
    char kernel_driver[32]; /* of the loaded module: differs from an upgrade until the next boot */
    char dev[128], run[128]; /* where the device nodes and the /proc tree are played; empty = not at all */
    char log[128];           /* call log of all processes; empty = none */
    int cuda, loaded;
    int gpu_count, fault_count, event_count;
    gpu gpus[MAX_GPUS];
    fault faults[MAX_FAULTS];
    event events[MAX_EVENTS];
} host_state;

/* The state that the current call works on; valid between call_begin and call_end. */
extern host_state host;

/* Directory of the state: NVMLSIM_STATE, or /var/lib/nvmlsim. */
const char *host_directory(void);

/* Read the state. Returns 0, or -1 with errno set (ENOENT: no host was initialised; EBADMSG: not a whole state). */
int host_load(void);

/* Replace the state. The caller holds the lock. Returns 0, or -1 with errno set. */
int host_save(void);

/* Wait for the writers' lock. Returns a descriptor to close, or -1 with errno set. */
int host_lock(void);

/* Set one of the fields that a test may disturb; returns -1 for an unknown key or a value out of its form. */
int host_set(const char *key, const char *value);

int gpu_has_instances(const gpu *g);
int gpu_is_held(const gpu *g); /* by a client, a profiler or a process */
void gpu_clear_instances(gpu *g);

#endif
