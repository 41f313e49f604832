/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of fork, registered while the library is loaded, which is before any thread can hold a
 * lock that they take. If they were registered at the first use of the lock, a fork at that moment
 * would find no handlers: the child would inherit a lock that is never released. (pthread_once does
 * not help: after a fork inside it, the child registers them twice or waits for ever, depending on
 * the C library.)
 *
 * The handlers that prepare a fork take the locks in their order (core/lock.h). pthread_atfork runs
 * them in reverse order of registration, so those of later places are registered first. In the
 * child the log's handler runs first, because the others may log. */
#ifndef SP_CORE_AT_FORK_H
#define SP_CORE_AT_FORK_H

#include <pthread.h>

#include "core/lock.h"
#include "core/log.h"

enum { SP_FORK_FIRST = 1000 }; /* priority of the first constructor */

/* Use it once in a file. PLACE is that of the first lock that PREPARE takes; PREPARE runs before a
 * fork, IN_PARENT and IN_CHILD after it. */
#define SP_AT_FORK(place, prepare, in_parent, in_child)                                            \
    __attribute__((constructor(SP_FORK_FIRST + SP_LOCK_LOG - (place)))) static void                \
    register_at_fork(void)                                                                         \
    {                                                                                              \
        if (pthread_atfork(prepare, in_parent, in_child) != 0)                                     \
            sp_log_warn("fork", "pthread_atfork refused: forked children must not use spanprof");  \
    }                                                                                              \
    _Static_assert(1, "a semicolon follows")

#endif
