/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of fork, registered while the library is loaded: before any thread can hold a lock that they take. Registered with the first use of
 * the lock, they come too late for a fork at that moment: the child would have a lock that is never given back. (pthread_once is no way out: a
 * fork inside it registers them twice, or leaves a child that waits for ever, as the C library has it.)
 *
 * Those who prepare run in reverse order of registration, so who takes outer locks comes behind who takes inner ones.
 * In the child the log's handler runs first: the others may have something to say. */
#ifndef SP_CORE_AT_FORK_H
#define SP_CORE_AT_FORK_H

#include <pthread.h>

#include "core/log.h"

enum { SP_FORK_LOG = 1000, SP_FORK_INNER_LOCKS = 1001, SP_FORK_OUTER_LOCKS = 1002 };

/* Once in a file. ORDER is one of the above; PREPARE runs before a fork, IN_PARENT and IN_CHILD behind it. */
#define SP_AT_FORK(order, prepare, in_parent, in_child)                                            \
    __attribute__((constructor(order))) static void register_at_fork(void)                         \
    {                                                                                              \
        if (pthread_atfork(prepare, in_parent, in_child) != 0)                                     \
            sp_log_warn("fork", "pthread_atfork refused: forked children must not use spanprof");  \
    }                                                                                              \
    _Static_assert(1, "a semicolon follows")

#endif
