/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the system calls, as the headers of the machine that this was compiled for have them.
 * Threads: any.  Signals: safe. */
#ifndef SP_SYMBOL_SYSCALL_NAMES_H
#define SP_SYMBOL_SYSCALL_NAMES_H

#include <stdint.h>

/* The name of a system call, as "futex": a static string. NULL when NUMBER is no system call, or is
 * newer than those headers. */
const char *sp_syscall_name(int64_t number);

#endif
