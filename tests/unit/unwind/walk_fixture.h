/* SPDX-License-Identifier: Apache-2.0 */
/* The modules of this program, for tests that walk its stacks. */
#ifndef TESTS_UNIT_UNWIND_WALK_FIXTURE_H
#define TESTS_UNIT_UNWIND_WALK_FIXTURE_H

#include <stdint.h>

#include "core/compiler.h"
#include "unwind/generation_sig.h"
#include "unwind/stack_bounds.h"
#include "unwind/walk_sig.h"

enum { WALK_DEPTH = 256 };

static sp_modules *modules;
static _Atomic(const sp_generation *) hazard;
static const sp_generation *generation; /* the one that was entered */
static sp_stack_bounds bounds;          /* of the thread whose stack is walked */

static inline int walk_set_up(void **state)
{
    (void)state;
    modules = sp_modules_create();
    bounds = sp_stack_bounds_of_self();
    generation = modules ? sp_generation_enter(modules, &hazard) : NULL;
    return generation ? 0 : -1;
}

static inline int walk_tear_down(void **state)
{
    (void)state;
    sp_modules_destroy(modules);
    return 0;
}

/* Called in a signal handler: walk the stack that was interrupted, which UCONTEXT describes. PCS
 * has room for WALK_DEPTH addresses. */
static inline sp_walk walk_interrupted(const void *ucontext, uint64_t *pcs)
{
    sp_walk walk = {.generation = generation,
                    .registers = sp_registers_from_ucontext(ucontext),
                    .bounds = bounds,
                    .pcs = pcs,
                    .max_depth = WALK_DEPTH};
    sp_walk_stack(&walk);
    return walk;
}

#endif
