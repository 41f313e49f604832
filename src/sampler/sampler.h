/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU sampler: a timer on each thread's CPU clock, its signal, and the tick that the signal's handler takes. */
#ifndef SP_SAMPLER_SAMPLER_H
#define SP_SAMPLER_SAMPLER_H

#include <signal.h>

#include <spanprof/status.h>
#include "module/module.h"
#include "thread/thread.h"

typedef struct sp_sampler_config {
    uint32_t cpu_hz;    /* 1 to 10,000 */
    uint32_t max_depth; /* 2 to 512 */
    int signal;         /* SIGPROF, or another */
    bool synthetic;     /* no timers, no handler: ticks come from sp_sampler_tick_here (tests) */
    const sp_modules *modules;
} sp_sampler_config;

/* --- handler_sig.c: the tick ---------------------------------------------------------------------------------------------- */

/* What the handler needs, set while no thread is armed. */
typedef struct sp_handler_state {
    const sp_modules *modules;
    uint32_t max_depth;
    uint32_t max_periods;      /* that may have passed between two looks of the kernel */
    struct sigaction previous; /* the host's, for signals that are not ours */
    _Atomic uint32_t probe; /* set by a signal that carries its address: our handler is reached */
} sp_handler_state;

extern sp_handler_state sp_handler;

void sp_handle_tick(int signal, siginfo_t *info, void *ucontext);

/* Take a tick of THREAD, the calling one, interrupted at UCONTEXT, that stands for PERIODS. */
SP_SIGSAFE void sp_tick(sp_thread *thread, uint32_t periods, const void *ucontext);

/* --- cpu_timer.c: the engine ----------------------------------------------------------------------------------------------- */

/* Install the handler and arm every thread. Threads that come later are armed at their first attach or when a scan finds them. */
spanprof_status sp_sampler_start(const sp_sampler_config *config, spanprof_error *error);
/* Disarm all threads, wait for ticks under way, give the signal back. What is in the rings stays to be drained. Returns false when a
 * tick does not end (its thread is stopped by a debugger): then the modules must not be freed. */
bool sp_sampler_stop(void);
/* Fork: prepare takes the engine's lock, parent gives it back; the child has no timers and does not sample. */
void sp_sampler_fork_prepare(void);
void sp_sampler_fork_parent(void);
void sp_sampler_fork_child(void);
/* A tick of the calling thread without a signal. Synthetic engine only. */
void sp_sampler_tick_here(uint32_t periods);
/* Threads that were found with their stack not known yet: find it (collector). */
void sp_sampler_learn_stack(sp_thread *thread);
/* Nanoseconds between two ticks of a thread. */
uint64_t sp_sampler_period_ns(void);
/* Threads with a timer now, and threads that could not be given one since the start. */
uint32_t sp_sampler_threads(void);
uint64_t sp_sampler_failed_threads(void);

#endif
