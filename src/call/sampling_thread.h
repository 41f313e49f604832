/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's way from one sample to the next, of one kind of calls (call_sampling.h). A call is
 * looked at between enter and leave. Threads: the owner.  Signals: safe; a handler that interrupts
 * between enter and leave cannot enter. */
#ifndef SP_CALL_SAMPLING_THREAD_H
#define SP_CALL_SAMPLING_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised. It is a part of what libspanprof-preload.so and the SDK share. */
typedef struct sp_sampling_thread {
    uint64_t left;   /* size until the next sample: a call of as much, or more, is sampled */
    uint64_t random; /* the state of its random numbers */
    uint32_t run;    /* of the calls when `left` was drawn */
    uint32_t inside; /* between enter and leave */
} sp_sampling_thread;

/* The calls' RUN, not 0, has one sample for a size of PERIOD on average. False when the thread is
 * inside already: then there is nothing to leave. */
bool sp_sampling_enter(sp_sampling_thread *thread, uint32_t run, uint64_t period);
void sp_sampling_leave(sp_sampling_thread *thread);

#endif
