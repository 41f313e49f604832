/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files in which the just-in-time compilers of a process name their code:
 * /tmp/perf-PID.map, and jit-PID.dump files, which compilers map so that readers find them. The
 * files are read once a round at most, and only when the name of an address in no module is
 * requested. Collector thread only. */
#ifndef SP_SYMBOL_JIT_NAMES_H
#define SP_SYMBOL_JIT_NAMES_H

#include <sys/types.h>

#include "symbol/code_table.h"

typedef struct sp_jit_names sp_jit_names;

/* For the code of PROCESS (0: this one). NULL when memory is short. */
sp_jit_names *sp_jit_names_create(pid_t process);
void sp_jit_names_destroy(sp_jit_names *names);

/* The name of the code at runtime ADDRESS; false when no file has one. FOUND's strings live until
 * the next round. */
bool sp_jit_names_find(sp_jit_names *names, uint64_t address, sp_code_name *found);

/* Begin a new round: the files are read again when the next address is requested. */
void sp_jit_names_rest(sp_jit_names *names);

#endif
