/* SPDX-License-Identifier: Apache-2.0 */
/* A visit: the state of another thread at this moment, determined from outside, without a signal
 * and without stopping the thread (docs/design/wall.md). Parts of the result are certain if the
 * thread's CPU clock and switch number did not change meanwhile; the other parts are marked.
 * Threads: one at a time. Signals: not safe. */
#ifndef SP_WALL_VISIT_H
#define SP_WALL_VISIT_H

#include "context/thread.h"
#include "unwind/module.h"
#include "unwind/outside_walk.h"
#include "wall/syscall_file.h"
#include "wall/wait.h"

typedef enum sp_visit_result {
    SP_VISIT_ON_CPU, /* it runs: ticks sample it */
    SP_VISIT_WAITS,  /* out->record says where, and for what */
    SP_VISIT_GONE,
    SP_VISIT_FAILED, /* errno says why */
} sp_visit_result;

enum { SP_VISIT_DEPTH_MAX = 512 };

/* A record as it goes into the ring: visit, interval, sample. */
typedef struct sp_visit {
    _Alignas(
        8) uint8_t record[sizeof(sp_visit_record) + SP_INTERVAL_BYTES_MAX +
                          sizeof(sp_sample_record) + (1 + SP_VISIT_DEPTH_MAX) * sizeof(uint64_t)];
    uint64_t cpu_ns; /* the thread's clock before and after, when is_proven */
    bool is_proven; /* the thread did not run meanwhile: the record is true until the thread's clock
                       advances */
} sp_visit;

/* How frame pointers that walks needed were found (sp_walk). */
typedef struct sp_fp_counts {
    uint64_t by_call, by_return, not_found;
} sp_fp_counts;

/* The tools of the visiting thread, made once. */
typedef struct sp_visitor {
    const sp_modules *modules;
    uint32_t max_depth;   /* 1 to SP_VISIT_DEPTH_MAX */
    bool with_attributes; /* intervals have those of their contexts */
    sp_syscall_files files;
    sp_stack_copy *copy;
    _Atomic(const sp_generation *) *hazard; /* the visiting thread's own */
    uint64_t discarded;                     /* out: attempts after which the thread had run */
    sp_fp_counts fp;                        /* out: as sp_walk's, over all visits */
} sp_visitor;

/* Visit THREAD, whose id is TID. *FILE is that thread's. The record's weight is 0. */
sp_visit_result sp_visit_thread(sp_visit *out, sp_thread *thread, pid_t tid, sp_syscall_file *file,
                                sp_visitor *visitor);
/* Whether another tracer's context of THREAD is still that of INTERVAL. True when contexts of other
 * tracers do not matter for THREAD. */
bool sp_visit_is_same_context(const sp_thread *thread, const sp_interval_record *interval);

#endif
