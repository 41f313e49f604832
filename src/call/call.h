/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of calls: stack and context of the code that calls, taken by that code itself, not by a
 * signal. Allocations, waits for locks, and the application's own values are sampled in this way.
 * The caller decides which calls are sampled, and what each stands for.
 *
 * Records go into a pool of rings (docs/design/memory.md). A thread takes a ring of the pool for
 * the moment of one record, so that each ring has one producer at a time, and no thread needs a
 * ring of its own.
 *
 * | operation                            | setup | any thread | collector |
 * | start, stop, fork_child              |  yes  |            |           |
 * | take, stack_here                     |       |    yes     |           |
 * | ring, hazard                         |       |            |    yes    |
 * Signals: take and stack_here do not lock, wait or allocate. A handler of the application may
 * interrupt them, and may call them itself. */
#ifndef SP_CALL_CALL_H
#define SP_CALL_CALL_H

#include "unwind/module.h"
#include "context/ring_sig.h"

typedef struct sp_calls_config {
    const sp_modules *modules;
    uint32_t max_depth;   /* 2 to 512 */
    bool with_attributes; /* of contexts */
} sp_calls_config;

/* A call that is sampled. */
typedef struct sp_call {
    uint32_t kind; /* sp_call_kind */
    uint32_t live_slot;
    uint64_t live_id;
    uint64_t value, count;
    const void *lock; /* the lock that was waited for; NULL: none */
    sp_call_holder holder;
    const sp_sample_record *holder_stack; /* NULL: not known */
    const void
        *return_address; /* of the function that was called: the stack begins with its caller */
} sp_call;

/* Make the rings, 1 MiB in all, if they do not exist. False when memory is short. Any thread; not
 * in handlers. */
bool sp_calls_prepare(void);
/* Calls are sampled from now on, if the rings exist. */
void sp_calls_start(const sp_calls_config *config);
/* No call is sampled any more. Returns whether none is under way: when a debugger has stopped a
 * thread in the middle, the modules that it reads must not be freed. A second call does nothing. */
bool sp_calls_stop(void);
/* In the child: no call is under way, and none is sampled. */
void sp_calls_fork_child(void);

/* Whether calls are sampled now. If not, callers can skip their work. */
bool sp_calls_are_taken(void);
/* Put CALL with the calling thread's stack and context into a ring. False when it was not stored:
 * no calls are sampled now, the rings are full (counted), or the thread is one of the SDK's own.
 * Keeps errno. */
bool sp_call_take(const sp_call *call);
/* The calling thread's stack as SAMPLE, which has room for DEPTH addresses, more than 10; it begins
 * with the caller of the function that returns to RETURN_ADDRESS. Empty where sp_call_take would
 * return false. Keeps errno. */
void sp_call_stack_here(sp_sample_record *sample, uint32_t depth, const void *return_address);

enum { SP_CALL_RINGS = 8 };

/* Ring NUMBER of the pool, which may not exist yet; and the hazard pointer for the generation that
 * its producer uses. */
sp_ring *sp_call_ring(uint32_t number);
_Atomic(const sp_generation *) *sp_call_hazard(uint32_t number);
/* Calls that found no room, since the start. */
uint64_t sp_calls_dropped(void);

#endif
