/* SPDX-License-Identifier: Apache-2.0 */
/* Makes threads tick on their CPU time. cpu_timer.c and cpu_perf.c are sibling files with the same
 * functions. A ticker's signal goes to its thread alone and carries its owner: a thread's state, or
 * the probe (engine_choice.c). Threads: the one that holds the engine's lock. Signals: not safe. */
#ifndef SP_CPU_CPU_SOURCE_H
#define SP_CPU_CPU_SOURCE_H

#include "cpu/cpu_threads_sig.h"

typedef struct sp_tick_plan {
    int signal;
    uint64_t period_ns;
    uint64_t first_ns; /* CPU time to the first tick, 1 to period_ns */
} sp_tick_plan;

typedef struct sp_cpu_source {
    const char *name;
    bool counts_steal; /* ticks continue while the host of a virtual machine has the core, because
                          their clock continues */
    /* Allocate the memory that all tickers share. False when SIGNAL cannot be used; then *WHY_NOT
     * is a static sentence. */
    bool (*prepare)(int signal, const char **why_not);
    /* Make thread TID tick for OWNER from now on. False, with errno, when that fails. */
    bool (*open)(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan);
    /* No signal is sent after it returns; one that is pending still finds its owner. */
    void (*suspend)(sp_ticker *ticker);
    /* A signal that is still pending finds no owner, and goes to the host's handler, if there is
     * one. The ticker may be suspended or not. */
    void (*close)(sp_ticker *ticker);
    /* False when the host has closed the ticker's descriptor. */
    bool (*is_open)(const sp_ticker *ticker);
    /* In a forked child: close everything that it inherited. */
    void (*after_fork)(void);
} sp_cpu_source;

extern const sp_cpu_source sp_cpu_timer, sp_cpu_perf;

#endif
