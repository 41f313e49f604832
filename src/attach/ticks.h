/* SPDX-License-Identifier: Apache-2.0 */
/* The ticks of another process's threads: perf events on their CPU clocks, which threads that begin
 * later inherit. The kernel copies registers and stack at the tick, and no thread is stopped. Where
 * perf events are not permitted, the states of the threads in /proc are polled once a period.
 *
 * Threads: one at a time.  Signals: not safe. */
#ifndef SP_ATTACH_TICKS_H
#define SP_ATTACH_TICKS_H

#include "unwind/walk_sig.h"

#include <sys/types.h>

typedef struct sp_attach_ticks sp_attach_ticks;

typedef struct sp_attach_tick {
    pid_t tid;
    uint32_t periods;
    bool was_in_kernel;     /* in a system call, or handling a fault */
    bool has_stack;         /* stack and registers are those of the tick */
    sp_registers registers; /* pc 0: the kernel gave none of a 64-bit program */
    const void *stack;      /* stack_bytes from registers.sp on; borrowed */
    uint64_t stack_bytes;
} sp_attach_tick;

/* Receives the ticks, and what happens between them. */
typedef struct sp_attach_listener {
    void (*tick)(void *user, const sp_attach_tick *tick);
    void (*mapped)(void *user); /* the process mapped code, or became another program */
    void (*lost)(void *user, uint64_t count); /* ticks for which there was no room */
    void *user;
} sp_attach_listener;

/* Tick each thread of PID each PERIOD_NS of its CPU time. NULL with errno: perf events are not
 * permitted (EACCES, EPERM, EMFILE), not there (ENOENT, ENOSYS, EINVAL), or memory is short. */
sp_attach_ticks *sp_attach_ticks_open(pid_t pid, uint64_t period_ns);
/* The same by polling states. NULL: memory is short. */
sp_attach_ticks *sp_attach_ticks_poll(pid_t pid, uint64_t period_ns);
void sp_attach_ticks_close(sp_attach_ticks *ticks);

/* "perf": of perf events; "poll": of polled states. */
const char *sp_attach_ticks_name(const sp_attach_ticks *ticks);
/* Whether time in the kernel ticks, too. */
bool sp_attach_ticks_count_kernel(const sp_attach_ticks *ticks);

/* Wait until there are ticks, FD can be read, a signal arrives, or MS have passed. */
void sp_attach_ticks_wait(const sp_attach_ticks *ticks, int fd, int ms);
/* Pass what has been recorded to LISTENER. */
void sp_attach_ticks_read(sp_attach_ticks *ticks, const sp_attach_listener *listener);

#endif
