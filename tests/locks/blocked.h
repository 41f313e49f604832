/* SPDX-License-Identifier: Apache-2.0 */
/* Contention that is certain: who holds a lock gives it back only when the other thread is seen to
 * wait for it. */
#ifndef TESTS_LOCKS_BLOCKED_H
#define TESTS_LOCKS_BLOCKED_H

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether thread TID waits in the system call that all locks wait in. */
static inline bool is_blocked(int tid)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    return length > 0 && text[0] >= '0' && text[0] <= '9' && atoi(text) == SYS_futex;
}

/* *TID is 0 until its thread has nothing left to do but to take the lock. */
static inline void wait_until_blocked(const _Atomic int *tid)
{
    while (*tid == 0)
        sched_yield();
    while (!is_blocked(*tid))
        sched_yield();
}

static inline int own_tid(void)
{
    return (int)syscall(SYS_gettid);
}

#endif
