/* SPDX-License-Identifier: Apache-2.0 */
/* The atomics of the project, as few named wrappers over C11. A comment at each release says which
 * acquire it pairs with. All are lock-free on every supported architecture, hence safe in signal
 * handlers. */
#ifndef SP_CORE_ATOMIC_H
#define SP_CORE_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
               "handlers need lock-free atomics");

#define sp_load_relaxed(object)         atomic_load_explicit(object, memory_order_relaxed)
#define sp_load_acquire(object)         atomic_load_explicit(object, memory_order_acquire)
#define sp_store_relaxed(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#define sp_store_release(object, value) atomic_store_explicit(object, value, memory_order_release)

/* Add N to a counter that several threads increment. It orders no other memory access. */
#define sp_count(object, n) ((void)atomic_fetch_add_explicit(object, n, memory_order_relaxed))

/* Add N to a counter that only one thread increments, and others read: no locked instruction. */
#define sp_count_owned(object, n) sp_store_relaxed(object, sp_load_relaxed(object) + (n))

/* Orders memory accesses between a thread and a signal handler on the same thread: a compiler
 * fence, no instruction. */
#define sp_fence_signal() atomic_signal_fence(memory_order_seq_cst)
#if defined(__SANITIZE_THREAD__)
#define sp_fence_full()                                                                            \
    __sync_synchronize() /* gcc refuses the standard fence under TSan, which ignores both */
#else
#define sp_fence_full() atomic_thread_fence(memory_order_seq_cst)
#endif

#endif
