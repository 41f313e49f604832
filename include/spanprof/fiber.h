/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: stacks that a program switches between by itself (ucontext, Boost.Context, coroutines of
 * a language, schedulers of its own), also from thread to thread.
 *
 * A fiber has scopes of its own, as a thread has. Contexts that are attached in it stay with it
 * while it is suspended, and are active again where it continues, on any thread. The library cannot
 * detect a change of stacks, so the code that makes one calls spanprof_fiber_switch right before:
 *
 *     spanprof_fiber fiber = spanprof_fiber_create(stack, stack_bytes);
 *     ...
 *     spanprof_fiber_switch(fiber);                   from the thread's own stack or another fiber
 *     swapcontext(&scheduler, &context);
 *     ...
 *     spanprof_fiber_switch((spanprof_fiber){0});     in the fiber: back to the thread's own stack
 *     swapcontext(&context, &scheduler);
 *
 * Between the two calls the context is the new one and the stack still the old. Samples that fall
 * there are unknown, never wrong, because a tick compares its stack pointer with the fiber's stack.
 * In the other order (stack first) this holds as well, except for a change from a thread's own
 * stack into a fiber other than the one that it ran last.
 *
 * A fiber is a handle: zero means the thread's own stack. docs/benchmarks/carriers.md has the cost
 * of a switch. Threads: any; a fiber may be created, switched to and destroyed by different
 * threads, which the program orders, as it does for the stack. Signals: not safe. Fork: the child
 * keeps all fibers and their scopes; those that other threads ran are suspended. Their stacks
 * stopped anywhere, so the child cannot resume them. It can only switch to them, detach their
 * scopes, and destroy them. All calls work, at the same price, while the SDK is not started. */
#ifndef SPANPROF_FIBER_H
#define SPANPROF_FIBER_H

#include <spanprof/context.h>

SPANPROF_BEGIN_DECLS

/* The zero handle is the thread's own stack. */
typedef struct spanprof_fiber {
    uint32_t slot;
    uint32_t generation;
} spanprof_fiber;

/* A new fiber without scopes, whose stack is the STACK_BYTES at STACK, its lowest address. They are
 * not touched, and may be freed once the fiber is destroyed and left. NULL or 0: unknown; then
 * samples between the two halves of a switch count for the fiber to which it goes, and stacks are
 * read more slowly (by a system call a KiB). Returns its handle, never zero. When memory is short
 * (counted in failed_attaches), or there are 262,144 fibers already, it returns the handle of an
 * unknown fiber: a switch to it returns ERROR_NOT_FOUND and is counted as below, its samples are
 * unknown, and nothing can be attached in it (each try is counted in failed_attaches, too). Since
 * 0.1. */
SPANPROF_API spanprof_fiber spanprof_fiber_create(void *stack, size_t stack_bytes);

/* The calling thread is about to continue in the stack of TO: make TO's scopes those of the thread.
 * Zero: the thread's own stack. A switch to the stack that runs already changes nothing. It
 * allocates only the state of a thread that has none yet. Returns ERROR_OTHER_THREAD when another
 * thread runs TO, ERROR_NOT_FOUND when TO is destroyed, or is what a failed create returned. Both
 * are counted in misuse_fiber; then it is unknown which fiber the thread runs: its samples are
 * unknown, and it cannot attach (it gets the zero scope), until it switches again. ERROR_NO_MEMORY
 * when the thread has no state and can have none (counted in failed_attaches). Since 0.1. */
SPANPROF_API spanprof_status spanprof_fiber_switch(spanprof_fiber to);

/* The fiber that the calling thread runs: zero on its own stack, and when the fiber is unknown.
 * Store it before a switch to a fiber, so that the fiber can switch back to it. Since 0.1. */
SPANPROF_API spanprof_fiber spanprof_fiber_current(void);

/* End FIBER's scopes, and invalidate the handle. Zero and dead handles: a no-op, the latter counted
 * in misuse_fiber. A fiber that a thread still runs, also the calling one (counted as well), keeps
 * its scopes until that thread switches; the handle is dead at once. A thread that ends in a fiber
 * leaves it suspended (counted, too). Since 0.1. */
SPANPROF_API void spanprof_fiber_destroy(spanprof_fiber fiber);

SPANPROF_END_DECLS

#endif
