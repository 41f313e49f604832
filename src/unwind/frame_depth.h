/* SPDX-License-Identifier: Apache-2.0 */
/* How far a function's frame pointer is above its stack pointer at one of its instructions:
 * computed from the effect of its code on both registers, from its first instruction on, along all
 * branches (x86-64). Threads: the one that OUTSIDE belongs to. Signals: not safe. */
#ifndef SP_UNWIND_FRAME_DEPTH_H
#define SP_UNWIND_FRAME_DEPTH_H

#include "unwind/function_range.h"

#define SP_DEPTH_ANY INT32_MAX

/* fp - sp is in [below, below + slack]. slack 0: it is exactly `below`. slack SP_DEPTH_ANY: the
 * code determines no upper bound (alloca). */
typedef struct sp_frame_depth {
    int32_t below;
    int32_t slack;
    bool is_assumed; /* no path to the instruction was found (exception handlers), so the value of
                        the function's body is assumed */
} sp_frame_depth;

typedef struct sp_depth_finder sp_depth_finder;

/* NULL: memory is short. */
sp_depth_finder *sp_depth_finder_create(void);
void sp_depth_finder_destroy(sp_depth_finder *finder);

/* The depth at PC in FUNCTION. If IS_EXACT, the instruction at PC runs next; else PC is the return
 * address of a call that is under way. If PARENT is not NULL, FUNCTION is a part of it at another
 * address, and its jumps enter FUNCTION. If PARENT is NULL, calls enter FUNCTION at its
 * beginning. */
sp_frame_depth sp_frame_depth_find(sp_depth_finder *finder, sp_outside *outside,
                                   const sp_function_range *function,
                                   const sp_function_range *parent, uint64_t pc, bool is_exact);

/* Call VISIT with the target of each jump that leaves FUNCTION, and with 0 for an unknown target,
 * until it returns true; then return true. Jumps through a table, as in a switch, stay inside and
 * are left out. */
bool sp_jumps_visit(sp_depth_finder *finder, sp_outside *outside, const sp_function_range *function,
                    bool (*visit)(void *user, uint64_t target), void *user);

#endif
