/* SPDX-License-Identifier: Apache-2.0 */
/* Where stacks are. For setup, a thread's beginning, and the collector. Signals: never, because the
 * functions read files and allocate. */
#ifndef SP_UNWIND_STACK_BOUNDS_H
#define SP_UNWIND_STACK_BOUNDS_H

#include "context/thread.h"
#include "unwind/walk_sig.h"

/* The calling thread's stack, also the main thread's; empty when libc does not know it. A fiber
 * that was not reported has another stack: the walk then uses guarded loads. */
sp_stack_bounds sp_stack_bounds_of_self(void);

/* Set *OUT to the mapping that contains SP. It is a hint: it may be unmapped at any time. False
 * when there is none. */
bool sp_stack_bounds_of_address(uint64_t sp, sp_stack_bounds *out);

/* Record the calling thread's stack in THREAD, which is its state. */
void sp_stack_learn_own(sp_thread *thread);

/* Find the stack of THREAD, which was found by a scan and has not recorded its stack yet
 * (collector). */
void sp_stack_learn(sp_thread *thread);

#endif
