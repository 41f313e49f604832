/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a fiber (src/context/fiber.c) shows whether the active context belongs to the stack
 * that a tick interrupted, and where a walk ends. */
#ifndef SP_UNWIND_FIBER_STACK_SIG_H
#define SP_UNWIND_FIBER_STACK_SIG_H

#include "context/thread.h"
#include "unwind/walk_sig.h"

/* Whether SP may be in the stack that belongs to the active context of THREAD. False between the
 * switch of a fiber's context and the switch of its stack. True when the fiber's stack is not
 * known. */
SP_SIGSAFE static inline bool sp_is_on_stack(sp_thread *thread, uint64_t sp)
{
    uint64_t low = sp_load_relaxed(&thread->owned.fiber_low),
             high = sp_load_relaxed(&thread->owned.fiber_high);
    bool is_of_fiber = sp >= low && sp < high;
    return low >= high || is_of_fiber == (sp_load_relaxed(&thread->owned.on_fiber) != 0);
}

/* The stack of the fiber that THREAD runs (src/context/fiber.c); empty when it runs none, or its
 * stack is not known. */
SP_SIGSAFE static inline sp_stack_bounds sp_stack_of_fiber(sp_thread *thread)
{
    if (SP_LIKELY(!sp_load_relaxed(&thread->owned.on_fiber)))
        return (sp_stack_bounds){0};
    return (sp_stack_bounds){sp_load_relaxed(&thread->owned.fiber_low),
                             sp_load_relaxed(&thread->owned.fiber_high)};
}

#endif
