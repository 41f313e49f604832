/* SPDX-License-Identifier: Apache-2.0 */
#include "call/sampling_run.h"

#include <stddef.h>

#include "core/atomic.h"

static void set_number(sp_sampling_run *run, uint32_t number)
{
    sp_store_release(&run->number, number);
    if (run->in_library)
        sp_store_release(run->in_library, number);
}

uint32_t sp_sampling_run_next(const sp_sampling_run *run)
{
    return sp_load_relaxed(&run->last) + 1;
}

void sp_sampling_run_start(sp_sampling_run *run, _Atomic uint32_t *in_library)
{
    uint32_t number = sp_sampling_run_next(run);
    run->in_library = in_library;
    sp_store_relaxed(&run->last, number);
    atomic_store(&run->started, 1);
    set_number(run, number);
}

void sp_sampling_run_stop(sp_sampling_run *run)
{
    atomic_store(&run->started, 0);
    set_number(run, 0);
}

void sp_sampling_run_pause(sp_sampling_run *run)
{
    set_number(run, 0);
}

/* The number that belongs to what start and stop did last. */
static uint32_t number_of(const sp_sampling_run *run)
{
    return atomic_load(&run->started) ? atomic_load(&run->last) : 0;
}

/* A stop, and another start after it, may run at the same time, and their set_number may be
 * executed before this one. So the number is computed again afterwards. */
void sp_sampling_run_resume(sp_sampling_run *run)
{
    uint32_t number = number_of(run);
    if (!number)
        return;
    do {
        number = number_of(run);
        set_number(run, number);
        atomic_thread_fence(memory_order_seq_cst);
    } while (number_of(run) != number);
}
