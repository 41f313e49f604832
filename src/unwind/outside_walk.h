/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of another thread's stack, of this process or of another one: from its program counter
 * and stack pointer only, which is what /proc/…/syscall tells of a thread that is blocked, or from
 * its registers. It is sp_walk_stack, on a copy.
 *
 * The other thread may wake at any moment, go on, exit, and its stack be unmapped: nothing of it is
 * ever dereferenced, and a walk on what changed meanwhile ends somewhere, with nonsense. The result
 * is worth something only if the caller can prove that the thread did not run from before pc and sp
 * were asked until the walk was over: its CPU clock did not move.
 *
 * Takes no lock of the program's and allocates nothing but in create. A stack copy is used by one
 * thread at a time; after a fork the child may use its own of it.  Signals: not safe. */
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
 * registers; what else is in there is set here. The thread has to be one of this process. WALK's
 * generation has to stay until the function returns. */
void sp_outside_walk(sp_stack_copy *copy, sp_walk *walk);

/* The same from all registers that WALK has, of a thread that stands still. */
void sp_outside_walk_registers(sp_stack_copy *copy, sp_walk *walk);
/* The same of a thread that has gone on since. BYTES at STACK are what its stack was from
 * registers.sp on; what is not among them ends the walk. */
void sp_outside_walk_dump(sp_stack_copy *copy, sp_walk *walk, const void *stack, uint64_t bytes);

#endif
