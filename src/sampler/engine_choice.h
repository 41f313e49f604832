/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine ticks: asked by taking real ticks, for a timer that can be made is not yet one that fires (gVisor, some emulators). */
#ifndef SP_SAMPLER_ENGINE_CHOICE_H
#define SP_SAMPLER_ENGINE_CHOICE_H

#include "sampler/cpu_source.h"
#include "sampler/sampler.h"

typedef struct sp_engine_choice {
    const sp_cpu_source *source;
    bool ticks; /* they arrived; else a warning has said why not */
    char reason[SP_ENGINE_REASON_SIZE];
} sp_engine_choice;

/* Choose as WANTED says, on the calling thread, with our handler installed for SIGNAL. With SPARES_CALLS, auto prefers the engine whose
 * ticks cut no system call short. Takes milliseconds of CPU time. */
void sp_engine_choose(sp_engine_choice *choice, sp_engine wanted, int signal, bool spares_calls);

/* Cycles (core/cycles_sig.h) of the longest tick that can be: what takes longer has lost its core. Takes a millisecond. */
uint64_t sp_engine_longest_tick_cycles(void);

/* Nanoseconds that an empty signal costs the thread that it interrupts: the tick without what the handler does. */
uint64_t sp_engine_signal_cost_ns(int signal);

#endif
