/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PROFILE_SYSCALL_NAMES_H
#define SP_PROFILE_SYSCALL_NAMES_H
#include <stddef.h>
#include <stdint.h>
static inline const char *sp_syscall_name(int64_t number)
{
    return (void)number, NULL;
}
#endif
