/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU engine: it makes each thread tick on its CPU time. A tick is a signal, whose handler
 * samples the thread. */
#ifndef SP_CPU_CPU_ENGINE_H
#define SP_CPU_CPU_ENGINE_H

#include <signal.h>

#include <spanprof/status.h>
#include "context/thread.h"
#include "unwind/module.h"

typedef enum sp_engine { SP_ENGINE_AUTO, SP_ENGINE_PERF, SP_ENGINE_TIMER } sp_engine;

enum { SP_CPU_HZ_MAX = 10000, SP_ENGINE_REASON_SIZE = 192 };

typedef struct sp_engine_config {
    uint32_t cpu_hz;    /* 1 to SP_CPU_HZ_MAX */
    uint32_t max_depth; /* 2 to 512 */
    int signal;         /* SIGPROF, or another */
    sp_engine engine;
    bool spares_calls;    /* auto: use timers at any rate, because their ticks end no wait */
    bool measure_cost;    /* of ticks, for a budget */
    bool with_attributes; /* intervals have those of their contexts */
    bool with_times;      /* samples have the time of their tick */
    bool without_ticks;   /* nothing ticks: threads are only found (CPU time is not sampled) */
    bool synthetic;       /* no timers, no handler: sp_engine_tick_here makes the ticks (tests) */
    const sp_modules *modules;
} sp_engine_config;

/* --- handler_sig.c: the tick ------------------------------------------------------------------ */

/* Settings of the handler, written while no thread is armed. */
typedef struct sp_handler_state {
    const sp_modules *modules;
    uint32_t max_depth;
    bool with_attributes;
    bool with_times;
    uint32_t max_periods; /* that one tick may represent when its context is new */
    /* A tick with more periods than these means that the signal was blocked: the kernel's timer
     * ticks do not miss a running thread for so long. */
    uint32_t blocked_periods;
    /* A tick that took longer has lost its core meanwhile. 0: the cost of ticks is not measured. */
    uint64_t cost_limit_cycles;
    bool has_fsgsbase; /* x86-64: the thread pointer can be read without the kernel */
    uint64_t period_ns;
    uint64_t jiffy_ns;      /* between two timer ticks of the kernel */
    uint64_t jiffy_unit_ns; /* interval of a timer until the kernel's first timer tick */
    /* Incremented by a signal that carries the address of this member: it proves that the handler
     * is reached. */
    _Atomic uint32_t probe;
} sp_handler_state;

extern sp_handler_state sp_handler;

void sp_handle_tick(int signal, siginfo_t *info, void *ucontext);

/* Take a tick of THREAD, the calling one, interrupted at UCONTEXT, that stands for PERIODS. */
SP_SIGSAFE void sp_tick(sp_thread *thread, uint32_t periods, const void *ucontext);

/* --- engine.c: the life of a run -------------------------------------------------------------- */

/* Install the handler, choose the engine and arm every thread. Later threads are armed at their
 * first attach or when a scan finds them. */
spanprof_status sp_engine_start(const sp_engine_config *config, spanprof_error *error);
/* Disarm all threads, wait for ticks under way, give the signal back. Records in the rings stay, to
 * be drained. Returns false when a tick does not end (its thread is stopped by a debugger): then
 * the modules must not be freed. */
bool sp_engine_stop(void);

/* The number of the run that was started last. The collector's calls below name their run and do
 * nothing when it is over: a collector that was abandoned must not change the next run. */
uint32_t sp_engine_run_number(void);
/* Adapt the periods of events to what their threads lose in switches (collector, about once a
 * second). */
void sp_engine_follow_switches(uint32_t run);
/* Open the tickers again that the host has closed (by their descriptors). Returns how many
 * (collector). */
uint32_t sp_engine_repair(uint32_t run);
/* Whether the SDK's handler is the installed one, or RUN is over. */
bool sp_engine_owns_signal(uint32_t run);

/* Fork: prepare takes the engine's lock, parent gives it back; the child has no tickers and does
 * not sample. */
void sp_engine_fork_prepare(void);
void sp_engine_fork_parent(void);
void sp_engine_fork_child(void);
/* A tick of the calling thread without a signal. Synthetic engine only. */
void sp_engine_tick_here(uint32_t periods);

/* The state of the run, for statistics and profiles. */
typedef struct sp_engine_state {
    uint32_t cpu_hz;
    bool paused;
    bool counts_steal; /* its ticks include steal time (cpu_source.h) */
    uint32_t threads;  /* that tick now */
    /* Those that tick by timer, because no descriptor was left for an event. */
    uint32_t fallback_threads;
    uint64_t failed_threads; /* threads that could not be made to tick, since the start */
    uint64_t signal_cost_ns; /* of an empty signal; 0: not measured */
    char engine[16];
    char reason[SP_ENGINE_REASON_SIZE];
} sp_engine_state;

void sp_engine_state_get(sp_engine_state *out);
/* Nanoseconds between two ticks of a thread. Changes only between hold_ticks and resume_ticks. */
uint64_t sp_engine_period_ns(void);

/* --- pausing.c: rate, pause, and the clocks without it ---------------------------------------- */

/* No thread ticks until resume; CPU time meanwhile is excluded, so it is not unattributed either.
 * Repeated calls do nothing. ERROR_NOT_STARTED. */
spanprof_status sp_engine_pause(void);
spanprof_status sp_engine_resume(void);

/* For a change of rate (collector): hold_ticks disarms all threads and returns whether no tick is
 * under way any more; the records in the rings are then of the old rate. resume_ticks arms all
 * threads again, at CPU_HZ. After a hold that returned false, resume_ticks must be called with the
 * old rate. Both do nothing, and hold returns false, when RUN is over. */
bool sp_engine_hold_ticks(uint32_t run);
void sp_engine_resume_ticks(uint32_t run, uint32_t cpu_hz);

/* CPU time of the process without the SDK's threads, and without that which passed in pauses. */
uint64_t sp_engine_process_cpu_ns(void);
/* The same of one thread; false when it is gone. */
bool sp_engine_thread_cpu_ns(sp_thread *thread, uint64_t *out);

#endif
