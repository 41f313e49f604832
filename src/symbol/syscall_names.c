/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/syscall_names.h"

#include <sys/syscall.h>

#include "core/compiler.h"

/* syscall_names.inc is a line SP_SYSCALL(read) for each SYS_read that the header defines
 * (cmake/SyscallNames.cmake). */
#define SP_SYSCALL(name) [SYS_##name] = #name,
static const char *const names[] = {
#include "symbol/syscall_names.inc"
};

const char *sp_syscall_name(int64_t number)
{
    return number >= 0 && (uint64_t)number < SP_ARRAY_LENGTH(names) ? names[number] : NULL;
}
