/* SPDX-License-Identifier: Apache-2.0 */
/* Derives what a blocked thread waits for from its system call and the arguments
 * (/proc/self/task/TID/syscall).
 *
 * The class follows from the call, or from the descriptor that it waits on: a read of a socket
 * waits for the network, the same read of a file for a disk. The class is only a hint where to
 * look: a local socket is "network", too, a file may be in memory, and an idle worker that waits on
 * a condition variable waits for a "lock", because the kernel only sees a futex. */
#ifndef SP_WALL_WAIT_H
#define SP_WALL_WAIT_H

#include <stdint.h>
#include <sys/types.h>

typedef enum sp_wait_class {
    SP_WAIT_CPU = 0,  /* does not wait: it runs */
    SP_WAIT_RUNNABLE, /* for a core */
    SP_WAIT_LOCK,     /* for another thread or process: futexes, SysV semaphores, locks on files */
    SP_WAIT_DISK,     /* for a file system */
    SP_WAIT_NETWORK,  /* for a socket */
    SP_WAIT_SLEEP,    /* for a point in time */
    SP_WAIT_OTHER,
    SP_WAIT_CLASS_COUNT
} sp_wait_class;

typedef enum sp_wait_descriptor {
    SP_DESCRIPTOR_NONE = 0, /* waits on no descriptor, or on one that is closed by now */
    SP_DESCRIPTOR_SOCKET,
    SP_DESCRIPTOR_PIPE, /* also a FIFO */
    SP_DESCRIPTOR_FILE,
    SP_DESCRIPTOR_DIRECTORY,
    SP_DESCRIPTOR_BLOCK_DEVICE,
    SP_DESCRIPTOR_DEVICE, /* a character device, terminals among them */
    SP_DESCRIPTOR_EPOLL,
    SP_DESCRIPTOR_EVENTFD,
    SP_DESCRIPTOR_TIMERFD,
    SP_DESCRIPTOR_SIGNALFD,
    SP_DESCRIPTOR_INOTIFY,
    SP_DESCRIPTOR_IO_URING,
    SP_DESCRIPTOR_PIDFD,
    SP_DESCRIPTOR_OTHER,
    SP_DESCRIPTOR_COUNT
} sp_wait_descriptor;

typedef struct sp_wait {
    uint8_t wait_class; /* sp_wait_class; never CPU or RUNNABLE as a result of sp_wait_of */
    uint8_t descriptor; /* sp_wait_descriptor */
} sp_wait;

/* "cpu", "lock", "socket", "block_device" …: static strings. "other" for a value outside of the
 * enum. Threads: any. Signals: safe. */
const char *sp_wait_class_name(sp_wait_class wait_class);
const char *sp_wait_descriptor_name(sp_wait_descriptor descriptor);

/* What a thread of this process waits for if it is blocked in SYSTEM_CALL (-1: in none, for example
 * in a page fault) with ARGUMENTS. Of several descriptors a socket counts, if there is one.
 *
 * The answer is a hint. The thread may continue meanwhile, so its descriptors may be closed and
 * their numbers reused; pointers may be invalid. None of this is an error: an unknown wait is
 * SP_WAIT_OTHER with SP_DESCRIPTOR_NONE. A thread with descriptors of its own (unshare of
 * CLONE_FILES) gets the answer for the same numbers of the calling thread. The watched descriptors
 * of an epoll instance may be those of up to a second ago, or of longer ago if it watches many
 * (wait.c).
 *
 * Allocates nothing and asks no file server. The cost is negligible for calls that determine the
 * class (futex, recv), else 0.2 to 4 µs; when an epoll instance is read again, 4 µs with one
 * descriptor and 30 with a hundred (tests/bench/bench_wait.c). Threads: one at a time (the wall
 * profiler's thread). Signals: not safe. */
sp_wait sp_wait_of(int64_t system_call, const uint64_t arguments[6]);

/* From now on sp_wait_of classifies waits of process PID, whose memory and descriptors this process
 * may read. Setup only. */
void sp_wait_set_process(pid_t pid);

#endif
