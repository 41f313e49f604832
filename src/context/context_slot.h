/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a thread's otel_thread_ctx_v1 (OTEP 4947). It is found before the first tick,
 * because a tick must not allocate, and the first access to a thread-local variable may. All
 * libraries that bind to that name share one variable, so another tracer's record is found there,
 * too. */
#ifndef SP_CONTEXT_CONTEXT_SLOT_H
#define SP_CONTEXT_CONTEXT_SLOT_H

#include "context/thread.h"

/* The distance of the variable from the thread pointer, or its place in a block of the thread's
 * vector. Written at start, while no thread ticks. */
typedef struct sp_context_layout {
    enum {
        SP_CONTEXT_NOWHERE = 0, /* unknown C library: only threads that attach have their slot */
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

/* Distance from the thread pointer to the pointer to the thread's vector (glibc). */
#if defined(__x86_64__)
#define SP_CONTEXT_VECTOR_AT 8
#elif defined(__aarch64__)
#define SP_CONTEXT_VECTOR_AT 0
#endif

/* The slot of the calling thread (registry.c). */
void *sp_context_slot_own(void);
/* Measure the layout on the calling thread. Setup. */
void sp_context_layout_learn(void);
/* Record SLOT in THREAD, the state of the calling thread. */
void sp_context_slot_set(sp_thread *thread, void *slot);
/* Find the slot of thread TID, which a scan found. If the thread's block does not exist yet, a tick
 * finds the slot later. Any thread. */
void sp_context_slot_find(sp_thread *thread, pid_t tid);

#endif
