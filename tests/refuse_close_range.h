/* SPDX-License-Identifier: Apache-2.0 */
/* Makes close_range fail, as on a kernel without it. There the descriptors of the exporter's files
 * and connections are among the host's descriptors. */
#ifndef TESTS_REFUSE_CLOSE_RANGE_H
#define TESTS_REFUSE_CLOSE_RANGE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Refuse close_range in this thread and in all threads that it starts later; this cannot be undone.
 * False when system calls cannot be filtered here. */
static inline bool refuse_close_range(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog code = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) == 0;
}

#endif
