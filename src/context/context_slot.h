/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread's otel_thread_ctx_v1 lies (OTEP 4947), known ahead: a tick must not ask, for the
 * first access to a thread-local variable may allocate. All libraries that bind to that name share
 * one variable, so another tracer's record is found there, too. */
#ifndef SP_CONTEXT_CONTEXT_SLOT_H
#define SP_CONTEXT_CONTEXT_SLOT_H

#include "context/thread.h"

/* How far from a thread's pointer the variable lies, or in which block of the thread's vector.
 * Written at start, while no thread ticks. */
typedef struct sp_context_layout {
    enum {
        SP_CONTEXT_NOWHERE =
            0, /* the C library is not known: only threads that attach have their slot */
        SP_CONTEXT_STATIC,
        SP_CONTEXT_BLOCK,
    } kind;
    int64_t offset;      /* from the thread pointer, or in the block */
    uint64_t module;     /* number of the block */
    int64_t list_offset; /* from the thread pointer to the head of the kernel's list of robust
                            mutexes */
} sp_context_layout;

extern sp_context_layout sp_context_layout_now;

/* Whether any thread was ever found under a context of another tracer. Until then the wall profiler
 * skips that check. */
extern _Atomic uint32_t sp_context_is_shared;

/* From a thread's pointer to the address of its vector (glibc). */
#if defined(__x86_64__)
#define SP_CONTEXT_VECTOR_AT 8
#elif defined(__aarch64__)
#define SP_CONTEXT_VECTOR_AT 0
#endif

/* registry.c: that of the calling thread. */
void *sp_context_slot_own(void);
/* Learn the layout from the calling thread. Setup. */
void sp_context_layout_learn(void);
/* SLOT is the calling thread's, whose state THREAD is. */
void sp_context_slot_set(sp_thread *thread, void *slot);
/* Find the slot of thread TID, which a scan found. If the thread's block does not exist yet, a tick
 * finds the slot later. Any thread. */
void sp_context_slot_find(sp_thread *thread, pid_t tid);

#endif
