/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the system calls, as the headers of the machine that this was compiled for have them.
 * Threads: any.  Signals: safe. */
#ifndef SP_SYMBOL_SYSCALL_NAMES_H
#define SP_SYMBOL_SYSCALL_NAMES_H

#include <stdint.h>

/* "futex", "clock_nanosleep": a static string. NULL when NUMBER is no system call, or one that is
 * younger than those headers. */
const char *sp_syscall_name(int64_t number);

#endif
