/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the kernel's functions, from /proc/kallsyms. The kernel shows their addresses only to
 * some users (kptr_restrict). Collector thread only. */
#ifndef SP_SYMBOL_KERNEL_NAMES_H
#define SP_SYMBOL_KERNEL_NAMES_H

#include "core/compiler.h"

typedef struct sp_kernel_names sp_kernel_names;

/* Whether ADDRESS is in the kernel's half. */
static inline bool sp_is_kernel_address(uint64_t address)
{
    return address >> 63;
}

/* Read PATH, which has the format of /proc/kallsyms. NULL when memory is short. The result has no
 * names when PATH cannot be read, or the kernel hides addresses. */
sp_kernel_names *sp_kernel_names_create(const char *path);
void sp_kernel_names_destroy(sp_kernel_names *names);
/* The function around ADDRESS, or NULL. The string lives until destroy. */
const char *sp_kernel_names_find(const sp_kernel_names *names, uint64_t address);

#endif
