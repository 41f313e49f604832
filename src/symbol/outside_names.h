/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of addresses in no module: code made just in time, and the kernel's.  Collector thread
 * only. */
#ifndef SP_SYMBOL_OUTSIDE_NAMES_H
#define SP_SYMBOL_OUTSIDE_NAMES_H

#include <sys/types.h>

#include "symbol/demangle.h"
#include "symbol/frame.h"

typedef struct sp_outside_names sp_outside_names;

/* For addresses of PROCESS (0: this one). NULL when memory is short. */
sp_outside_names *sp_outside_names_create(sp_demangle_style style, pid_t process);
void sp_outside_names_destroy(sp_outside_names *names);

/* The frame at runtime ADDRESS; "[kernel]+0xaddr" or "[unknown]+0xaddr" when no name is known. It
 * lives until sp_outside_names_rest. NULL when memory is short. */
const sp_frame *sp_outside_names_frame(sp_outside_names *names, uint64_t address);

/* Call it once a window: the next request reads what compilers have reported since. */
void sp_outside_names_rest(sp_outside_names *names);

/* Read the kernel's names from PATH instead of /proc/kallsyms. For tests; PATH is borrowed for
 * ever. */
void sp_outside_names_set_kallsyms(const char *path);

#endif
