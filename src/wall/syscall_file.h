/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/task/TID/syscall (proc_pid_syscall(5)): what the kernel shows of a blocked thread,
 * without stopping it: system call, stack pointer, program counter. A thread may always read the
 * files of threads of its own process; opening it needs the right to read a file that belongs to
 * the process's user, or to root once the process is not dumpable (prctl(2), PR_SET_DUMPABLE).
 *
 * Files are kept open, because opening costs six times as much as reading, but only a limited
 * number, because the host needs descriptors, too. Threads: one at a time. Signals: not safe. */
#ifndef SP_WALL_SYSCALL_FILE_H
#define SP_WALL_SYSCALL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum sp_syscall_state {
    SP_SYSCALL_RUNNING, /* on a core, or waiting for one */
    SP_SYSCALL_BLOCKED, /* it did not run while the line was made */
    SP_SYSCALL_GONE,    /* no such thread any more */
    SP_SYSCALL_FAILED,  /* errno says why */
} sp_syscall_state;

typedef struct sp_syscall_line {
    int64_t number; /* -1: in the kernel, but in no system call (a page fault, stopped) */
    uint64_t arguments[6];
    uint64_t sp, pc;
} sp_syscall_line;

/* The file of one thread. All zero is a closed one. */
typedef struct sp_syscall_file {
    int fd_plus_one; /* 0: closed */
    uint32_t kept;   /* index in sp_syscall_files.kept */
    uint64_t inode;  /* shows whether the descriptor is still this file */
} sp_syscall_file;

typedef struct sp_syscall_files {
    int tasks;      /* /proc/self/task; -1: not open */
    uint64_t inode; /* of tasks */
    uint32_t count, limit;
    uint64_t random;
    sp_syscall_file **kept;
} sp_syscall_files;

/* Files of this process's threads: at most an eighth of RLIMIT_NOFILE are kept. False when /proc
 * cannot be read (errno) or memory is short. */
bool sp_syscall_files_open(sp_syscall_files *files);
/* Close all. Also in a forked child, where they are the parent's. */
void sp_syscall_files_close(sp_syscall_files *files);

/* Read the line of thread TID, whose file is FILE. It is opened if it is closed; FILE must not move
 * until it is closed. */
sp_syscall_state sp_syscall_file_read(sp_syscall_files *files, sp_syscall_file *file, pid_t tid,
                                      sp_syscall_line *out);
/* Open another file, NAME, of thread TID. The caller closes the descriptor. -1 with errno. */
int sp_syscall_files_open_other(sp_syscall_files *files, pid_t tid, const char *name);
/* Close FILE, for example because its thread is gone. */
void sp_syscall_file_close(sp_syscall_files *files, sp_syscall_file *file);

/* Whether TEXT is a line of a blocked thread. */
bool sp_syscall_line_parse(const char *text, sp_syscall_line *out);

#endif
