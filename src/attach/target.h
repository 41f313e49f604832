/* SPDX-License-Identifier: Apache-2.0 */
/* The process that is sampled from outside: whether it can be sampled, its name, and its end.
 * Threads: one at a time. Signals: not safe. */
#ifndef SP_ATTACH_TARGET_H
#define SP_ATTACH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sp_attach_target {
    pid_t pid;
    int pidfd;              /* readable once the process has ended */
    char name[64];          /* of the command, without its folders */
    char executable[4096];  /* its path; "" when it is not known */
    uint64_t start_time_ns; /* of the process, since the epoch; 0: not known */
} sp_attach_target;

enum { SP_ATTACH_PROBLEM = 512 };

/* Check the process whose id is TEXT. False, with *TARGET closed, when it cannot be sampled: then
 * PROBLEM is one sentence that says why, and what to do. */
bool sp_attach_target_open(sp_attach_target *target, const char *text,
                           char problem[SP_ATTACH_PROBLEM]);
void sp_attach_target_close(sp_attach_target *target);

/* Write into PROBLEM why the memory of PID cannot be read: its owner, YAMA_SCOPE
 * (kernel.yama.ptrace_scope), or other rights. Returns false. */
bool sp_attach_say_denied(pid_t pid, bool is_another_users, long yama_scope,
                          char problem[SP_ATTACH_PROBLEM]);

bool sp_attach_target_has_ended(const sp_attach_target *target);
/* The CPU time that it has used, 0 once it has ended. */
uint64_t sp_attach_target_cpu_ns(const sp_attach_target *target);

/* Read the file NAME in /proc/PID into OUT, as far as SIZE allows, with a NUL. False: it cannot be
 * read. */
bool sp_attach_read_proc(pid_t pid, const char *name, char *out, size_t size);

#endif
