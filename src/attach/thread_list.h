/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that a process has now. Threads: one at a time.  Signals: not safe. */
#ifndef SP_ATTACH_THREAD_LIST_H
#define SP_ATTACH_THREAD_LIST_H

#include <stddef.h>
#include <sys/types.h>

/* Zero-initialised is empty; tids are the caller's, for free(). */
typedef struct sp_attach_thread_list {
    pid_t *tids;
    size_t count, capacity;
} sp_attach_thread_list;

/* List the threads of PID anew; none: it has ended. */
void sp_attach_thread_list_take(sp_attach_thread_list *list, pid_t pid);

#endif
