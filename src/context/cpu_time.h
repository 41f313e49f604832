/* SPDX-License-Identifier: Apache-2.0 */
/* The exact CPU time of spans: the advance of a thread's CPU clock between two switches is charged
 * to the account of the span that was active (docs/design/cpu-time.md). While CPU time is off, a
 * switch only reads one word.
 *
 * Ids are the eight bytes of a context, as a word. A live span has an account. It is opened before
 * any thread can attach the span, and closed when the span ends. Contexts and threads name accounts
 * by ids, never by pointers.
 *
 * | operation        | owner thread | other threads | lock                           |
 * | switch, leave    |     yes      |               | that of the local root's share |
 * | open, close      |     any      |      any      | likewise                       |
 * | start, stop      |    setup     |               | none                           |
 * Threads: as above.  Signals: not safe. */
#ifndef SP_CONTEXT_CPU_TIME_H
#define SP_CONTEXT_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include <spanprof/context.h>
#include "core/atomic.h"

struct sp_thread;

/* Which spans get their CPU time: SPANPROF_CPU_TIME. */
typedef enum sp_cpu_time {
    SP_CPU_TIME_NONE = 0,
    SP_CPU_TIME_ROOT = 1, /* local roots */
    SP_CPU_TIME_ALL = 2,
} sp_cpu_time;

/* The account that a thread's CPU time since `mark_ns`, by its CPU clock, is charged to. While
 * account_id names an account, that account's lock guards account_id and mark_ns: another thread
 * that ends the span charges the time, and sets both. The owner thread changes no other member
 * meanwhile. While account_id names no account, only the owner thread uses the members. */
typedef struct sp_cpu_interval {
    uint64_t root_id; /* of the context of the interval; 0: none is open */
    uint64_t span_id;
    _Atomic uint64_t account_id; /* 0: none */
    uint64_t mark_ns;
    uint32_t run; /* sp_cpu_time_run when it began */
} sp_cpu_interval;

/* 0: off. Else the number of the start, and in the low bits a sp_cpu_time. Switches read
 * sp_switch_watchers (watchers.h) first. */
extern __attribute__((visibility("hidden"))) _Atomic uint32_t sp_cpu_time_run;

/* CPU time is counted for WHICH spans from here on, until the stop. Setup. */
void sp_cpu_time_start(sp_cpu_time which);
void sp_cpu_time_stop(void);
/* In a forked child, before its own start: drop all accounts and intervals, which were the
 * parent's. */
void sp_cpu_time_after_fork(void);

/* THREAD, the calling one, has made CONTEXT active. */
void sp_cpu_time_switch(struct sp_thread *thread, const spanprof_context *context);
/* THREAD, the calling one, ends. */
void sp_cpu_time_leave(struct sp_thread *thread);
/* THREAD has ended without a call of sp_cpu_time_leave: its CPU time since its last switch is lost.
 */
void sp_cpu_time_abandon(struct sp_thread *thread);

/* A span begins. PARENT_ID is 0 for none. False when memory is short, which is counted. */
bool sp_cpu_time_open(uint64_t root_id, uint64_t span_id, uint64_t parent_id);
/* A span ends: *OUT is the CPU time, on all threads and up to now, of it and of its descendants.
 * False when it has no account. */
bool sp_cpu_time_close(uint64_t root_id, uint64_t span_id, uint64_t *out);

/* Since the last start. Unattributed is the CPU time under sampled contexts of this process whose
 * local root does not live, also while a descendant of it lives and has an account. */
typedef struct sp_cpu_time_counters {
    uint64_t unattributed_ns;
    uint64_t dropped; /* spans without an account, because memory was short */
} sp_cpu_time_counters;

void sp_cpu_time_counters_get(sp_cpu_time_counters *out);

#endif
