/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of another thread's stack, of this process or of another one: from its program counter
 * and stack pointer only, which /proc/…/syscall shows for a blocked thread, or from all its
 * registers. It runs sp_walk_stack on a copy of the stack.
 *
 * The other thread may wake at any moment and exit, and its stack may be unmapped. So its memory is
 * never dereferenced; a walk on a stack that changes meanwhile ends with a wrong result. The result
 * is valid only if the caller proves that the thread did not run from before pc and sp were read
 * until the walk was over: its CPU clock did not advance.
 *
 * It takes no lock of the program, and allocates only in create. A stack copy is used by one thread
 * at a time; after a fork the child may use its copy of it. Signals: not safe. */
#ifndef SP_UNWIND_OUTSIDE_WALK_H
#define SP_UNWIND_OUTSIDE_WALK_H

#include <sys/types.h>

#include "unwind/walk_sig.h"

typedef struct sp_stack_copy sp_stack_copy;

/* NULL: memory is short. Some 400 KiB; one for each thread that walks. */
sp_stack_copy *sp_stack_copy_create(void);
/* For the threads of another process, whose memory this one may read. */
sp_stack_copy *sp_stack_copy_create_for(pid_t pid);
void sp_stack_copy_destroy(sp_stack_copy *copy);

/* Fill in WALK as sp_walk_stack does, from generation, pcs, max_depth and the pc and sp in
 * registers; the other members are set here. The thread has to be one of this process. WALK's
 * generation has to stay until the function returns. */
void sp_outside_walk(sp_stack_copy *copy, sp_walk *walk);

/* The same from all registers that WALK has, of a thread that is stopped. */
void sp_outside_walk_registers(sp_stack_copy *copy, sp_walk *walk);
/* The same for a thread that has run since. STACK has BYTES that were at registers.sp. The walk
 * ends where it needs other memory. */
void sp_outside_walk_dump(sp_stack_copy *copy, sp_walk *walk, const void *stack, uint64_t bytes);

#endif
