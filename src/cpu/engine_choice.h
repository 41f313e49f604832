/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the engine. It tests engines with real ticks, because a timer that can be created does
 * not always fire (gVisor, some emulators). */
#ifndef SP_CPU_ENGINE_CHOICE_H
#define SP_CPU_ENGINE_CHOICE_H

#include "cpu/cpu_engine.h"
#include "cpu/cpu_source.h"

typedef struct sp_engine_choice {
    const sp_cpu_source *source;
    bool ticks; /* a tick arrived; else a warning was logged */
    char reason[SP_ENGINE_REASON_SIZE];
} sp_engine_choice;

/* Choose an engine for CONFIG. The ticks of the test go to the calling thread; the SDK's handler
 * must be installed for its signal. KERNEL_TICK_HZ is how often timers can expire (CONFIG_HZ).
 * Takes milliseconds of CPU time. */
void sp_engine_choose(sp_engine_choice *choice, const sp_engine_config *config,
                      uint32_t kernel_tick_hz);

/* The result of a probe. */
typedef struct sp_engine_probe {
    bool ticks;      /* a tick arrived */
    bool ends_waits; /* and ended a system call with EINTR; false may be luck */
    int error;       /* errno of a ticker that could not be opened; 0: it could */
} sp_engine_probe;

/* Make SOURCE tick on the calling thread until a tick arrives or PATIENCE_NS of CPU time have
 * passed. */
sp_engine_probe sp_engine_probe_source(const sp_cpu_source *source, int signal,
                                       uint64_t patience_ns);

/* Cycles (core/cycles_sig.h) of the longest possible tick: a tick that takes longer has lost its
 * core. Takes a millisecond. */
uint64_t sp_engine_longest_tick_cycles(void);

/* Nanoseconds that an empty signal costs the thread that it interrupts: a tick without the work of
 * the handler. */
uint64_t sp_engine_signal_cost_ns(int signal);

#endif
