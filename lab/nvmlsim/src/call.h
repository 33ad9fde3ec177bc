/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What surrounds every NVML call: the mutex, the state, permissions, faults and the call log. */
#ifndef NVMLSIM_CALL_H
#define NVMLSIM_CALL_H

#include "abi.h"
#include "host.h"

#define API __attribute__((visibility("default")))

/* PRIVILEGED calls read, but nvml.h says of them "Requires privileged user". */
typedef enum { READ, PRIVILEGED, WRITE } access_kind;

/* Enter a call. On success `host` holds the state, under the writers' lock when the call writes. In any case
 * call_end must follow. */
nvml_return call_begin(const char *name, access_kind kind);

/* Leave a call: save and publish what a successful write changed, log the call, and return its result. */
nvml_return call_end(nvml_return result);

/* Let other threads and processes work for a while in the middle of a call that reads; the state is read again. */
nvml_return call_pause(unsigned milliseconds);

/* NVML_CALL(READ, nvmlX, (type a), (a)) { body } defines the public nvmlX; the body runs between begin and end. */
#define NVML_CALL(kind, name, parameters, arguments)        \
    static nvml_return body_of_##name parameters;           \
    API nvml_return name parameters {                       \
        nvml_return result = call_begin(#name, kind);       \
        if (!result) result = body_of_##name arguments;     \
        return call_end(result);                            \
    }                                                       \
    static nvml_return body_of_##name parameters

/* An older entry point with the same meaning and layout. */
#define NVML_ALIAS(name, target) extern API __typeof__(target) name __attribute__((alias(#target)));

/* NVML_GETTER(nvmlX, type, decode, value): a getter of one value, over the reference r that decode made of a handle. */
#define NVML_GETTER(name, type, decode, value)                                    \
    NVML_CALL(READ, name, (void *device, type *out), (device, out)) {             \
        reference r;                                                              \
        nvml_return result = decode(device, &r);                                  \
        if (result || !out) return result ? result : NVML_ERROR_INVALID_ARGUMENT; \
        *out = (value);                                                           \
        return NVML_SUCCESS;                                                      \
    }

/* Count of nvmlInit calls without nvmlShutdown. */
extern int init_count;

/* May the caller use what nvml.h calls privileged? */
int caller_is_privileged(void);

nvml_return copy_text(const char *text, char *out, uint32_t size);

#endif
