/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one thread between two samples of one kind of calls (call_sampling.h). A call is
 * processed between enter and leave. Threads: the owner. Signals: safe; a handler that interrupts
 * between enter and leave cannot enter. */
#ifndef SP_CALL_SAMPLING_THREAD_H
#define SP_CALL_SAMPLING_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised. libspanprof-preload.so and the SDK share this struct. */
typedef struct sp_sampling_thread {
    uint64_t left;   /* size until the next sample: a call of as much, or more, is sampled */
    uint64_t random; /* the state of its random numbers */
    uint32_t run;    /* the run for which `left` was drawn */
    uint32_t inside; /* between enter and leave */
} sp_sampling_thread;

/* RUN is the number of the run, not 0; PERIOD is the mean size between two samples. False when the
 * thread is inside already; then leave must not be called. */
bool sp_sampling_enter(sp_sampling_thread *thread, uint32_t run, uint64_t period);
void sp_sampling_leave(sp_sampling_thread *thread);

#endif
